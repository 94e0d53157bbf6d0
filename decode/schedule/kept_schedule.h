// SPDX-License-Identifier: Apache-2.0
//
// A part of a schedule that is a schedule too.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/schedule/schedule.h"

namespace plumb::cases {

// Requests by their ids, from 1; steps by their places, from 0. Who comes or goes in a step that is
// left out does so in the next one that is kept. A request that came meanwhile has in its caches
// what it would have computed, so that its context there is as long as it was; one that was there
// lacks these tokens.
std::vector<ScheduledStep> kept_part(const std::vector<ScheduledStep>& schedule,
                                     const KeepList& requests, const KeepList& steps);

// How many requests take part in it.
std::int64_t requests_of(const std::vector<ScheduledStep>& schedule);

}  // namespace plumb::cases
