// SPDX-License-Identifier: Apache-2.0
//
// A child process: another program, or a function of this one. Unless Command::own_group is false,
// it leads its own process group. It is killed when this process ends.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "process/channel.h"
#include "process/deadline.h"

namespace plumb::process {

// Target of a standard stream of a child.
struct Redirection {
  enum class To { inherited, nothing, closed, file, descriptor };
  To to = To::inherited;
  std::string path = {};  // of a file: read as input, or overwritten as output
  int descriptor = -1;

  static Redirection inherited() { return {}; }
  static Redirection nothing() { return {To::nothing}; }  // /dev/null
  static Redirection closed() { return {To::closed}; }
  static Redirection file(std::string path) { return {To::file, std::move(path)}; }
  static Redirection to_descriptor(int descriptor) { return {To::descriptor, {}, descriptor}; }
};

struct Command {
  std::vector<std::string> words;             // the program, looked up in PATH, and its arguments
  std::string folder = {};                    // working directory; "": that of this process
  std::vector<std::string> environment = {};  // NAME=value adds or replaces, NAME removes
  Redirection in = Redirection::nothing(), out = {}, err = {};
  bool channel = false;  // a socket to this process, as descriptor kChannel of the child
  // false: the child stays in the process group of this process, so a kill of that group ends the
  // child too.
  bool own_group = true;
};

// How a process ended.
struct Ending {
  int code = 0;    // exit code, if no signal
  int signal = 0;  // signal that ended the process; 0: none
  bool ok() const { return code == 0 && signal == 0; }
  std::string text() const;  // "ended with signal 11 (Segmentation fault)"
};

// Not thread-safe.
class Child {
 public:
  static constexpr int kChannel = 3;

  // Throws std::system_error if the program cannot be started.
  explicit Child(const Command& command);
  // Forks this process. The child calls `body` and exits with the code that it returns. The words,
  // folder and environment of `command` are ignored.
  Child(const std::function<int()>& body, const Command& command);
  // Kills the child's process group, or the child alone if it has no group of its own.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t id() const { return id_; }
  Channel& channel() { return *channel_; }
  // Returns false if the child is still running at the deadline. Throws Interrupted, unless
  // `always`.
  bool wait(Deadline deadline, bool always = false);
  bool has_ended();
  // Valid after the process has ended.
  const Ending& ending() const { return ending_; }
  // Sends the signal to the child's group, or to the child alone if it has no group of its own.
  void send_signal(int signal) const;
  // If `seconds` > 0, first sends SIGTERM, on which a compiler removes a half-written file, and
  // waits up to `seconds` for the child's end. Then sends SIGKILL to what is left of the group.
  void end(double seconds = 0);
  // Waits for the child alone, without a deadline. Processes that the child started in the
  // background continue.
  void release();

 private:
  void start(const Command& command, const std::function<int()>& body);

  pid_t id_ = -1;
  bool own_group_ = true;
  bool ended_ = false;
  Ending ending_;
  std::unique_ptr<Channel> channel_;
};

}  // namespace plumb::process
