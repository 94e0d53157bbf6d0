// SPDX-License-Identifier: Apache-2.0
//
// Shared by the cases of the RMSNorm family: rows and weights for every fill, and which padded rows
// are promised.
#pragma once

#include <plumb/ops/norm.h>

#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/fill.h"
#include "reference/norm/rms_norm.h"

namespace plumb::cases {

inline constexpr float kNormEps = 1e-6f;

// Fills rows [0, live) of x as the step's fill says. Rows [live, rows) are dead.
//  exact: every row is +-2^k, k in 5..9: the mean square is 4^k, eps is lost in fp32, y = +-w
//  adversarial, by row: zero, one spike, subnormals, squares near the fp32 limits, a NaN, an inf
void fill_norm_rows(HostTensor& x, std::int64_t live, std::uint64_t seed, const Step& step);
// Weights are far enough from 1 that applying a norm twice is wrong. Exact fills use powers of two.
void fill_norm_weight(HostTensor& weight, std::uint64_t seed, Fill fill);
inline const ContractChoice kRounding{
    "rounding", {"once", "twice"}, "to bf16: of the output, or of the normalised row as well"};
reference::NormRounding rounding_of(plumb_rounding rounding);
// One call of rms_norm in the plain sequence of a fused norm. Sets eps, stream and a dense output
// stride; the caller sets all other members of `p`.
plumb_status launch_plain_norm(const device::OpEntry& entry, plumb_rms_norm_params p,
                               device::Stream stream);
// Which rows are promised (compared): live rows, and dead ones (padding) whose inputs are finite
// and moderate, with the kinds of padding zero and foreign.
RowMask promised_norm_rows(std::int64_t rows, std::int64_t live, DeadRows dead);
// Simulated work of normalising `rows` rows: 6 operations per element, and five shuffles and a
// barrier for each thread of a row.
double norm_cost(std::int64_t rows, std::int64_t hidden);
// Work per element: its square, and its product with the scale and the weight. One root per row.
ReferenceWork norm_work(const TensorSet& tensors, std::int64_t rows, std::int64_t hidden);
// Exact and adversarial rows repeat values, so their roundings are not independent.
reference::Estimate mark_structured(reference::Estimate&& estimate, Fill fill);

}  // namespace plumb::cases
