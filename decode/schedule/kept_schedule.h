// SPDX-License-Identifier: Apache-2.0
//
// Selects a part of a schedule, in such a way that the part is a valid schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/schedule/schedule.h"

namespace plumb::cases {

// Keeps requests by id (from 1) and steps by index (from 0). A request that comes or goes in an
// omitted step does so in the next kept one. If it came in omitted steps, its caches hold the
// tokens that it would have computed there, so its context stays as long as it was. A request that
// existed before lacks these tokens.
std::vector<ScheduledStep> kept_part(const std::vector<ScheduledStep>& schedule,
                                     const KeepList& requests, const KeepList& steps);

// Number of requests in the schedule.
std::int64_t requests_of(const std::vector<ScheduledStep>& schedule);

}  // namespace plumb::cases
