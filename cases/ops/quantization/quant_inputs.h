// SPDX-License-Identifier: Apache-2.0
//
// Rows to be quantised, and what the judges of quantised tensors share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/judge/expectation.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "reference/quantization/group_quant.h"

namespace plumb::cases {

// Writes rows [0, live) of a bf16 tensor as the step says, the others dead.
//   exact: every group's largest value is `largest` times a power of two, and every value a code
//   adversarial: by row and group: zeros of both signs; ties; a largest value at or beside a power
//     of two times `largest`; values that underflow beside one that does not; values around the
//     floors; one outlier; codes of NaN's neighbourhood; values near the end of bf16's range
void fill_quant_rows(HostTensor& x, std::int64_t live, std::uint64_t seed, const Step& step,
                     const reference::GroupQuant& how);

// What a NaN or an infinity is quantised to is nobody's contract: rows without one are promised,
// padding or not.
RowMask finite_rows(const HostTensor& x);
// The same before there is an x.
RowMask promised_quant_rows(std::int64_t rows, std::int64_t live, DeadRows dead);

reference::Bf16Rows bf16_rows(const HostTensor& x);

// The byte of a UE8M0 scale that is stored as fp32; 255, which is none, if it is no power of two.
std::uint8_t byte_of_scale(float scale);
// The byte tensor of fp32 scales that have to be powers of two.
HostTensor bytes_of_scales(std::string name, std::int64_t rows, std::int64_t columns,
                           const std::vector<double>& scales,
                           const std::shared_ptr<const Origin>& origin = {});
// The fp32 scale of a byte, bits of both.
std::uint64_t scale_of_byte(std::uint64_t byte);

// fp32 scales [rows, groups]: by value, and none below the floor of the scale, which may be so
// small that a bound takes it for nothing.
Expectation expect_fp32_scales(const HostTensor& scales, const reference::Bf16Rows& x,
                               const reference::GroupQuant& how,
                               const reference::Numerics& numerics, const RowMask& promised);

// 10^-4 for -4, none for 0, otherwise 10^-10.
FloatOfInteger quant_floor(std::string parameter);

// Simulated work of quantising: eight threads a group, three shuffles each.
double quant_cost(std::int64_t groups, std::int64_t elements);

}  // namespace plumb::cases
