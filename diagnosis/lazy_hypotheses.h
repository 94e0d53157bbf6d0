// SPDX-License-Identifier: Apache-2.0
//
// Lazy kernels (faults/lazy) as explanations of a failed case: a kernel that ignores a stride, an
// input or the tail of a row.
#pragma once

#include <string>
#include <vector>

#include "faults/lazy/lazy_kernels.h"

namespace plumb::cases {

// Those that get other launches than the right kernel in this case, and stay within its tensors.
std::vector<LazyKernel> lazy_hypotheses(const Case& which, const std::string& platform);

// What the kernel does, as a report says it: "does not write the last row of out".
std::string meaning_of(const LazyKernel& kernel);

}  // namespace plumb::cases
