// SPDX-License-Identifier: Apache-2.0
//
// The questions of a search for ops (ops_search.h), put to a decode step in this process.
#pragma once

#include <string>
#include <vector>

#include "bisect/ops/ops_search.h"
#include "decode/watch/watch.h"

namespace plumb::bisect {

// All that a decode step may call, with what stands beside ops.
const Ops& exchangeable_ops();

cases::DecodeSetup with_exchanged(cases::DecodeSetup setup, const Ops& exchanged);

OpsAnswer watch_exchanged(const cases::DecodeSetup& setup, const cases::ScheduleShape& shape,
                          const Ops& exchanged);
// Of an engine as it would be served. An empty list for steps that throw.
std::vector<float> results_of(const cases::DecodeSetup& setup, const cases::ScheduleShape& shape,
                              const Ops& exchanged);

}  // namespace plumb::bisect
