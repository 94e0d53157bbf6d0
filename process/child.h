// SPDX-License-Identifier: Apache-2.0
//
// A child process: another program, or a function of this one. It leads a process group of its own,
// does not outlive this process, and every wait for it has a deadline.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "process/channel.h"
#include "process/deadline.h"

namespace plumb::process {

// Where a standard stream of a child leads.
struct Redirection {
  enum class To { inherited, nothing, closed, file, descriptor };
  To to = To::inherited;
  std::string path = {};  // of a file: input is read, output is written anew
  int descriptor = -1;

  static Redirection inherited() { return {}; }
  static Redirection nothing() { return {To::nothing}; }  // /dev/null
  static Redirection closed() { return {To::closed}; }
  static Redirection file(std::string path) { return {To::file, std::move(path)}; }
  static Redirection to_descriptor(int descriptor) { return {To::descriptor, {}, descriptor}; }
};

struct Command {
  std::vector<std::string> words;             // the program, looked up in PATH, and its arguments
  std::string folder = {};                    // "": this process's
  std::vector<std::string> environment = {};  // NAME=value adds or replaces, NAME removes
  Redirection in = Redirection::nothing(), out = {}, err = {};
  bool channel = false;  // a socket to this process: descriptor kChannel of the child
  // false: in the group of this process, which then ends with it and with all that it has started.
  bool own_group = true;
};

// How a process ended.
struct Ending {
  int code = 0;    // exit code, if no signal
  int signal = 0;  // that ended it; 0: none
  bool ok() const { return code == 0 && signal == 0; }
  std::string text() const;  // "ended with signal 11 (Segmentation fault)"
};

// Not for several threads at once.
class Child {
 public:
  static constexpr int kChannel = 3;

  // Throws std::system_error if the program cannot be started.
  explicit Child(const Command& command);
  // A copy of this process, which calls `body` and ends with the returned exit code. Of `command`
  // the words, the folder and the environment are not used.
  Child(const std::function<int()>& body, const Command& command);
  // Ends the whole process group.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t id() const { return id_; }
  Channel& channel() { return *channel_; }
  // False: it had not ended at the deadline. Throws Interrupted, unless `always`.
  bool wait(Deadline deadline, bool always = false);
  bool has_ended();
  // Of a process that has ended.
  const Ending& ending() const { return ending_; }
  // To the whole group, if it has one of its own.
  void send_signal(int signal) const;
  // Asks the group with SIGTERM, because a compiler then removes a half-written file. Ends it with
  // SIGKILL after `seconds`.
  void end(double seconds = 0);
  // Waits for this process alone. What it started in the background goes on.
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
