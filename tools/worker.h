// SPDX-License-Identifier: Apache-2.0
//
// Cases in a process of their own: one that crashes or never ends costs itself only. A worker is
// this program again, started with the same command line, which therefore has the same list of
// tasks; the parent sends it their numbers.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace plumb::tools {

using Bytes = std::vector<std::uint8_t>;

// Why there is no answer: "its process ended with signal 11 (Segmentation fault)".
struct Death {
  std::string why;
  bool timed_out = false;
};

// The parent's side. Not for several threads at once.
class Worker {
 public:
  // command: the program and its arguments. timeout in seconds; 0: none.
  Worker(std::vector<std::string> command, double timeout);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The worker's answer to a task. Starts a process if there is none; after a death the next task
  // gets a fresh one. Throws std::system_error if no process can be started.
  std::variant<Bytes, Death> run(std::uint64_t task);
  // The next task gets a fresh process: after a fault, a real device's state is not to be trusted.
  void retire();

 private:
  void start();
  Death bury(bool timed_out);

  std::vector<std::string> command_;
  double timeout_;
  pid_t process_ = -1;
  int channel_ = -1;
};

// This program's own command line, to start it again.
std::vector<std::string> own_command_line();

// The worker's side: is this process a worker, and the loop that answers tasks until the parent
// hangs up. An exception of `answer` ends the process, as the parent is told.
bool is_worker();
int serve(const std::function<Bytes(std::uint64_t task)>& answer);

}  // namespace plumb::tools
