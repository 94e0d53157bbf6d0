// SPDX-License-Identifier: Apache-2.0
//
// What the cases of the RMSNorm family share: rows and weights for every fill, and which padded
// rows are promised.
#pragma once

#include <plumb/ops/norm.h>

#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/fill.h"
#include "reference/norm/rms_norm.h"

namespace plumb::cases {

inline constexpr float kNormEps = 1e-6f;

// Rows [0, live) of x as the step says, rows [live, rows) dead.
//   exact: every row is +-2^k, k in 5..9, so the mean square is 4^k, eps vanishes in fp32 and y =
//   +-w adversarial: by row, a zero row, one spike, subnormals, squares near the fp32 limits, a
//   NaN, an inf
void fill_norm_rows(HostTensor& x, std::int64_t live, std::uint64_t seed, const Step& step);
// Far enough from 1 that a norm applied twice shows; exact fills use powers of two.
void fill_norm_weight(HostTensor& weight, std::uint64_t seed, Fill fill);
inline const ContractChoice kRounding{
    "rounding", {"once", "twice"}, "to bf16: of the output, or of the normalised row as well"};
reference::NormRounding rounding_of(plumb_rounding rounding);
// Calls rms_norm, as the plain sequence of a fused norm does. `p` lacks eps and stream.
plumb_status launch_plain_norm(const device::OpEntry& entry, plumb_rms_norm_params p,
                               device::Stream stream);
// Dead rows are rows like any other where their inputs are finite and moderate.
RowMask promised_norm_rows(std::int64_t rows, std::int64_t live, DeadRows dead);
// Simulated work of normalising `rows` rows: two passes, and a block of 256 threads per row that
// meets six shuffles and a barrier.
double norm_cost(std::int64_t rows, std::int64_t hidden);
// A square and a product with the scale and the weight for each element, a root for each row.
ReferenceWork norm_work(const TensorSet& tensors, std::int64_t rows, std::int64_t hidden);
// Exact and adversarial rows repeat values, so their roundings are not independent.
reference::Estimate mark_structured(reference::Estimate&& estimate, Fill fill);

}  // namespace plumb::cases
