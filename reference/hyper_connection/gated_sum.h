// SPDX-License-Identifier: Apache-2.0
//
// The gated sum of a token's four streams, alone or followed by an RMS norm in the same kernel.
#pragma once

#include <cstdint>

#include "reference/bound.h"
#include "reference/hyper_connection/hyper_connection.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

// y / sqrt(mean(y^2) + eps) * weight. The kernel keeps y as bf16, the mean square is of y
// unrounded.
struct FusedNorm {
  const std::uint16_t* weight = nullptr;  // bf16 [hidden]; no norm without it
  double eps = 0;
};

// Of tokens [begin, end): sum_j gates[j] x[j, :], j ascending, in fp32. gates: [end - begin, 4].
// The result: [end - begin, hidden].
Tracked gated_sum(const Streams& streams, std::int64_t begin, std::int64_t end,
                  const Tracked& gates, const FusedNorm& norm = {});

}  // namespace plumb::reference
