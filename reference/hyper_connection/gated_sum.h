// SPDX-License-Identifier: Apache-2.0
//
// The gated sum of a token's four streams, alone or followed by an RMS norm in the same kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/bound.h"
#include "reference/hyper_connection/hyper_connection.h"

namespace plumb::reference {

// y / sqrt(mean(y^2) + eps) * weight. The kernel keeps y as bf16, the mean square is of y
// unrounded.
struct FusedNorm {
  const std::uint16_t* weight = nullptr;  // bf16 [hidden]; no norm without it
  double eps = 0;
};

// Writes row `row` of `out`: sum_j gates[j] x[j, :], j ascending, in fp32. `out.shift` must have
// been allocated for a norm; without one it is written if it has been.
void gated_sum(const std::vector<double>& x, const Gates& gates, const FusedNorm& norm,
               const Numerics& numerics, std::int64_t row, Estimate& out);

}  // namespace plumb::reference
