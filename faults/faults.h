// SPDX-License-Identifier: Apache-2.0
//
// Faults: deliberate, named defects that prove that plumb detects them. Three forms: mutant kernels
// (mutants/*.cmake), decorators around a device, and wrong options of a run.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

struct Mutant {
  std::string_view name, op;
  std::string_view case_id;  // a case that must fail
  std::string_view says;     // what its report must contain
  std::string_view why;      // what is wrong
  std::vector<std::string> platforms;
  device::OpEntry entry;
  device::OpEntry cuda_entry;  // without a launcher unless built with PLUMB_CUDA_MUTANTS
};
std::ostream& operator<<(std::ostream& out, const Mutant& mutant);  // prints its name
const std::vector<Mutant>& all_mutants();

// The given platforms and, if sim-sm90 is one of them, the CUDA platforms that are available.
std::vector<std::string> with_real_counterparts(std::vector<std::string> simulated);

// plumb's kernels with one op replaced by the mutant.
RunOptions with_mutant(RunOptions options, const Mutant& mutant);
// Graph replays do nothing. A graph case that still passes proves nothing.
RunOptions with_dead_replay(RunOptions options);
// The capture starts from the state that the warm-up filled, and not from a fresh one (vLLM
// #42444).
RunOptions with_warm_up_state_kept(RunOptions options);
// Captures in global mode: an allocation by another thread invalidates them.
RunOptions with_global_captures(RunOptions options);
// Runners of a concurrent case share their inputs, or the state of the op.
RunOptions with_runners_sharing(RunOptions options, RunOptions::Sharing what);

}  // namespace plumb::cases
