// SPDX-License-Identifier: Apache-2.0
//
// Answers the questions of a search for ops (ops_search.h) by running a decode step in this
// process.
#pragma once

#include <string>
#include <vector>

#include "bisect/ops/ops_search.h"
#include "decode/watch/watch.h"

namespace plumb::bisect {

// All ops of plumb, and the placeholder kernels of decode steps (they stand in for projections and
// embeddings).
const Ops& exchangeable_ops();

cases::DecodeSetup with_exchanged(cases::DecodeSetup setup, const Ops& exchanged);

OpsAnswer watch_exchanged(const cases::DecodeSetup& setup, const cases::ScheduleShape& shape,
                          const Ops& exchanged);
// Outputs of the same steps, taken without detectors. Empty if a step throws.
std::vector<float> results_of(const cases::DecodeSetup& setup, const cases::ScheduleShape& shape);

}  // namespace plumb::bisect
