// SPDX-License-Identifier: Apache-2.0
//
// The floating-point environment of a thread around a call of a plug-in: rounding mode, flush to
// zero, traps. If a plug-in changed it, later computations of the thread would change.
#pragma once

#include <cfenv>
#include <string>
#include <vector>

namespace plumb::device {

// Saves the environment. The destructor notes what the call has changed, and restores it. Exception
// flags are ignored.
class KeptFloatEnvironment {
 public:
  // who: the start of each note, "launches: rms_norm"
  explicit KeptFloatEnvironment(std::string who);
  ~KeptFloatEnvironment();
  KeptFloatEnvironment(const KeptFloatEnvironment&) = delete;
  KeptFloatEnvironment& operator=(const KeptFloatEnvironment&) = delete;

 private:
  struct Modes {
    int rounding = 0, traps = 0;
    int x87 = 0;  // rounding and precision of the x87 unit
    bool flushes_results = false, flushes_operands = false;
    bool operator==(const Modes&) const = default;
  };
  static Modes modes();
  void note(const Modes& changed) const;

  std::string who_;
  Modes before_;
  std::fenv_t saved_;
};

// The notes of all threads since the last call: one line for each change, none twice.
std::vector<std::string> take_float_notes();

}  // namespace plumb::device
