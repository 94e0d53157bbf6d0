// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/step_run.h"

#include <algorithm>

#include "decode/schedule/environment.h"

namespace plumb::cases {

StepRun run_to_step(const DecodeSetup& setup, const ScheduleShape& shape, std::int64_t step,
                    std::optional<CallRecorder::Kept> recorder) {
  WatchedEngine twin(setup, recorder);
  twin.engine.capture();
  snapshot(twin);  // as a watch does: the same timing may decide a race
  const std::vector<ScheduledStep> schedule = make_schedule(shape, setup.geometry);
  StepRun run;
  device::decode::StepSegments::Parts parts;
  for (std::int64_t i = 0; i <= step; ++i) {
    const ScheduledStep& scheduled = schedule.at(static_cast<std::size_t>(i));
    let_requests_change(scheduled, twin.engine);
    if (i % setup.in_flight == 0) {
      if (i > 0) twin.device->synchronize();
      if (recorder) twin.recorder->poison(twin.engine.stream());
      snapshot(twin);
      parts.clear();
    }
    const device::decode::Counters before = twin.engine.counters();
    run.builds = before.steps + before.captures;
    twin.engine.step(scheduled.batch, padding_of(i));
    add_parts(twin.engine.parts(), parts);
  }
  twin.device->synchronize();
  if (recorder) run.values = values_of(twin, parts);
  return run;
}

DecodeSetup as_it_should_be(DecodeSetup setup) {
  setup.policies = {};
  setup.implementation = nullptr;
  setup.wrap = nullptr;
  setup.conditions.checked = false;
  return setup;
}

}  // namespace plumb::cases
