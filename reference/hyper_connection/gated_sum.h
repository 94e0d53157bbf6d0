// SPDX-License-Identifier: Apache-2.0
//
// The gated sum of a token's four streams, optionally followed by an RMS norm in the same kernel.
#pragma once

#include <cstdint>

#include "reference/bound.h"
#include "reference/hyper_connection/hyper_connection.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

// y / sqrt(mean(y^2) + eps) * weight. The kernel rounds y to bf16 for the product, but takes the
// mean square of y before this rounding.
struct FusedNorm {
  const std::uint16_t* weight = nullptr;  // bf16 [hidden]; null: no norm
  double eps = 0;
};

// sum_j gates[j] x[j, :] for tokens [begin, end), with j ascending, in fp32. gates: [end - begin,
// 4]. Returns [end - begin, hidden].
Tracked gated_sum(const Streams& streams, std::int64_t begin, std::int64_t end,
                  const Tracked& gates, const FusedNorm& norm = {});

}  // namespace plumb::reference
