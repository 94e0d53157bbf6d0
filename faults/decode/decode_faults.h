// SPDX-License-Identifier: Apache-2.0
//
// Faults of a decode step: named, each with the change or hazard that it stands for, the op that is
// broken, a detector that sees it and a tempting one that does not. plumb faults runs them.
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
  std::string broken;      // the op that the first finding has to name; "inputs" of the step
  Detector seen_by;
  Detector blind;
  ScheduleShape schedule;
  // The returned setup owns what it changed. Throws NotOnThisPlatform.
  Plant inject;
  // The same with other parameters, as a hypothesis for a failure in a step before which metadata
  // was built so many times: the likely ones first.
  std::function<std::vector<Plant>(std::int64_t builds)> sweep = nullptr;
  // No detector may see it: what is computed stays within what the ops declare. What it costs is
  // counted (router_flips.h).
  bool within_numerics = false;
};
const std::vector<DecodeFault>& all_decode_faults();  // those to be found
const std::vector<DecodeFault>& faults_within_numerics();

}  // namespace plumb::cases
