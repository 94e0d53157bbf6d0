// SPDX-License-Identifier: Apache-2.0
//
// What is plainer than what in a decode step (decode/schedule/decode_step.h): its traffic, lengths
// and conditions; and what its schedule is made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bisect/cases/shrink.h"
#include "cases/tables/registry.h"
#include "decode/schedule/decode_step.h"

namespace plumb::bisect {

// Gives the knobs of a decode step their orders, the ones that make the schedule first, and takes
// those away that say what is served: the model, and the fault that is planted. Spells out what a
// word that is not set stands for.
void order_serving(Candidate& start, Shrinkable& subject);

// Throws cases::BadRow and std::invalid_argument for what cannot be served.
std::vector<cases::ScheduledStep> schedule_of(const cases::StepCase& which,
                                              const std::string& platform);
std::vector<std::int64_t> step_numbers(const std::vector<cases::ScheduledStep>& schedule);
std::vector<std::int64_t> request_numbers(const std::vector<cases::ScheduledStep>& schedule);

// Do two cases with the same fault, or without one, come to the same?
bool serve_the_same(const cases::StepCase& one, const cases::StepCase& other,
                    const std::string& platform);

// What takes part in a schedule.
struct ServingSize {
  std::int64_t requests = 0, steps = 0;
  std::string text() const;  // "2 requests in 3 steps"
};
ServingSize serving_size(const cases::StepCase& which, const std::string& platform);

}  // namespace plumb::bisect
