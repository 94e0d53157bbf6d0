// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C and requests to end, as an exception in the threads that wait for a child process.
#pragma once

#include <stdexcept>
#include <string>

namespace plumb::process {

// SIGINT, SIGTERM or SIGHUP has arrived while an Interrupts was alive.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal);
  // What was awaited has been interrupted, and not this process.
  explicit Interrupted(const std::string& why) : std::runtime_error(why) {}
  int signal() const { return signal_; }  // 0: this process got none

 private:
  int signal_ = 0;
};

// While one is alive, SIGINT, SIGTERM and SIGHUP do not end this process: the waits of this library
// throw Interrupted instead. A SIGHUP that was ignored before (nohup) stays ignored. One at a time.
class Interrupts {
 public:
  enum class Second { waits, ends_at_once };  // what a second signal does
  explicit Interrupts(Second second = Second::waits);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  static int signal();  // that has arrived; 0: none
  static void check();  // throws Interrupted
};

// "SIGINT", or "signal 34".
std::string name_of_signal(int signal);

}  // namespace plumb::process
