// SPDX-License-Identifier: Apache-2.0
//
// Faults of a decode step. Each names the change or hazard that it stands for, the broken op, a
// detector that must see it and a detector that should miss it. plumb faults runs them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "decode/watch/step_case_run.h"
#include "decode/watch/watch.h"

namespace plumb::cases {

using Plant = std::function<DecodeSetup(DecodeSetup)>;

struct DecodeFault {
  std::string name;
  std::string stands_for;  // "vLLM #42604: ..."
  std::string broken;      // op that the first finding must name, or "inputs" of the step
  Detector seen_by;
  Detector blind;
  ScheduleShape schedule;
  // The returned setup owns what was changed in it. Throws NotOnThisPlatform.
  Plant inject;
  // The same fault with other parameters, as hypotheses for a failed step, likely ones first.
  // `builds`: how often metadata was built before that step.
  std::function<std::vector<Plant>(std::int64_t builds)> sweep = nullptr;
  // No detector may see the fault, because results stay within the declared numerics. Its effect is
  // counted (router_flips.h).
  bool within_numerics = false;
};
const std::vector<DecodeFault>& all_decode_faults();  // faults that must be found
const std::vector<DecodeFault>& faults_within_numerics();

}  // namespace plumb::cases
