// SPDX-License-Identifier: Apache-2.0
//
// Rows for quantising ops, and what the verdicts on quantised tensors share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/judge/expectation.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "reference/quantization/group_quant.h"

namespace plumb::cases {

// Fills rows [0, live) of a bf16 tensor as the step's fill says. All others are dead.
//  exact: every group's largest value is `largest` times a power of two, and every value a code
//  adversarial: by row and group: zeros of both signs; ties; a largest value at or next to a power
//    of two times `largest`; values that underflow together with one that does not; values around
//    the floors; one outlier; numbers of the code format; values near the end of bf16's range
void fill_quant_rows(HostTensor& x, std::int64_t live, std::uint64_t seed, const Step& step,
                     const reference::GroupQuant& how);

// Rows of `x` without NaN and infinity, padding or not. Other rows are not judged, since engines
// quantise NaN and infinity differently.
RowMask finite_rows(const HostTensor& x);
// Like finite_rows, but from the kind of padding alone, for use before there is an `x`.
RowMask promised_quant_rows(std::int64_t rows, std::int64_t live, DeadRows dead);

reference::Bf16Rows bf16_rows(const HostTensor& x);

// The byte of a UE8M0 scale that is stored as fp32; 255, which is no scale, if the fp32 number is
// no power of two.
std::uint8_t byte_of_scale(float scale);
// Converts fp32 scales, which have to be powers of two, to a tensor of UE8M0 bytes.
HostTensor bytes_of_scales(std::string name, std::int64_t rows, std::int64_t columns,
                           const std::vector<double>& scales,
                           const std::shared_ptr<const Origin>& origin = {});
// The bits of the fp32 scale that a UE8M0 byte stands for.
std::uint64_t scale_of_byte(std::uint64_t byte);

// Expects fp32 scales [rows, groups] by value, and none below the floor of scales. The floor has a
// check of its own, because it may be smaller than the bound of a value.
Expectation expect_fp32_scales(const HostTensor& scales, const reference::Bf16Rows& x,
                               const reference::GroupQuant& how,
                               const reference::Numerics& numerics, const RowMask& promised);

// The floor that an exponent stands for: 1e-4 for -4, none for 0, otherwise 1e-10.
FloatOfInteger quant_floor(std::string parameter);

// Simulated work of quantising: eight threads per group with three shuffles each.
double quant_cost(std::int64_t groups, std::int64_t elements);

}  // namespace plumb::cases
