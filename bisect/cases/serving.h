// SPDX-License-Identifier: Apache-2.0
//
// Defines for decode steps (decode/schedule/decode_step.h) which values of traffic, lengths and
// conditions are plainer than others, and what the size of a schedule is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bisect/cases/shrink.h"
#include "cases/tables/registry.h"
#include "decode/schedule/decode_step.h"

namespace plumb::bisect {

// Sets the order of values for the parameters of a decode step, and moves the ones that determine
// the schedule to the front. Removes parameters without an order: what is served (model, planted
// fault), and the keep lists, which are shortened separately. If `start` does not set traffic or
// lengths, sets it to its default, "random", which is not the plainest value.
void order_serving(Candidate& start, Shrinkable& subject);

// Throws cases::BadRow and std::invalid_argument if the case cannot be served.
std::vector<cases::ScheduledStep> schedule_of(const cases::StepCase& which,
                                              const std::string& platform);
std::vector<std::int64_t> step_numbers(const std::vector<cases::ScheduledStep>& schedule);
std::vector<std::int64_t> request_numbers(const std::vector<cases::ScheduledStep>& schedule);

// True if both cases serve the same schedule under the same conditions and fault.
bool serve_the_same(const cases::StepCase& one, const cases::StepCase& other,
                    const std::string& platform);

// Number of requests and steps in a schedule.
struct ServingSize {
  std::int64_t requests = 0, steps = 0;
  std::string text() const;  // "2 requests in 3 steps"
};
ServingSize serving_size(const cases::StepCase& which, const std::string& platform);

}  // namespace plumb::bisect
