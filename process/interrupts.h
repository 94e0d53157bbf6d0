// SPDX-License-Identifier: Apache-2.0
//
// Turns Ctrl-C and other requests to end into an exception in the threads that wait for a child
// process.
#pragma once

#include <stdexcept>
#include <string>

namespace plumb::process {

// Thrown if SIGINT, SIGTERM or SIGHUP arrived while an Interrupts object exists.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal);
  // For an interrupt of the process that this one waits for; this process got no signal.
  explicit Interrupted(const std::string& why) : std::runtime_error(why) {}
  int signal() const { return signal_; }  // 0: this process got no signal

 private:
  int signal_ = 0;
};

// While an Interrupts object exists, SIGINT, SIGTERM and SIGHUP do not end this process; the waits
// of this library throw Interrupted instead. A SIGHUP that was ignored before (nohup) stays
// ignored. At most one object may exist.
class Interrupts {
 public:
  // What a second signal does: nothing new, or it ends the process.
  enum class Second { waits, ends_at_once };
  explicit Interrupts(Second second = Second::waits);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  static int signal();  // the signal that arrived; 0: none
  static void check();  // throws Interrupted if a signal arrived
};

// "SIGINT", or "signal 34".
std::string name_of_signal(int signal);

}  // namespace plumb::process
