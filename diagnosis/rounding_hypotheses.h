// SPDX-License-Identifier: Apache-2.0
//
// Ways of rounding as explanations of a failed case. `right`: what a right kernel leaves.
#pragma once

#include <optional>

#include "cases/drivers/run.h"

namespace plumb::cases {

bool is_compared(const TensorSpec& spec);

// Each bf16 result cut off toward zero. Where the exact value lies within its error of a number
// of the format, an honest kernel may be on either side. Nothing: the op has no such results.
std::optional<TensorSet> cut_off_results(const Problem& problem,
                                         const device::OpEntry& right_kernel,
                                         const CaseEvidence& evidence, const TensorSet& right);

// Bits that are right as fp16, to the precision of bf16. Where they are not, bits that no kernel
// stores. Nothing if fewer than half are right so.
std::optional<TensorSet> stored_as_fp16(const CaseEvidence& evidence, const TensorSet& right);

}  // namespace plumb::cases
