// SPDX-License-Identifier: Apache-2.0
//
// Wrong roundings as explanations of a failed case. `right`: the results of a right kernel.
#pragma once

#include <optional>

#include "cases/drivers/run.h"

namespace plumb::cases {

bool is_compared(const TensorSpec& spec);

// Each bf16 result truncated towards zero. If the exact value is within its error of a bf16 number,
// the observed value may be on either side. nullopt: the op has no bf16 results.
std::optional<TensorSet> cut_off_results(const Problem& problem,
                                         const device::OpEntry& right_kernel,
                                         const CaseEvidence& evidence, const TensorSet& right);

// The observed bits where they are right if read as fp16, to the precision of bf16; elsewhere bits
// that no kernel stores. nullopt if fewer than half are right as fp16.
std::optional<TensorSet> stored_as_fp16(const CaseEvidence& evidence, const TensorSet& right);

}  // namespace plumb::cases
