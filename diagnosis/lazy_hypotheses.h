// SPDX-License-Identifier: Apache-2.0
//
// Lazy kernels (plumb's own kernel with one added assumption, faults/lazy) as explanations of a
// failed case, such as a kernel that ignores a stride, an input or the tail of a row.
#pragma once

#include <string>
#include <vector>

#include "faults/lazy/lazy_kernels.h"

namespace plumb::cases {

// The lazy kernels whose assumption is false in this case, and near values of its scalars.
std::vector<LazyKernel> lazy_hypotheses(const Case& which, const std::string& platform);

// True if the kernel may reach outside the case's tensors.
bool may_leave(const LazyKernel& kernel);

// What the kernel does wrong, for reports: "does not write the last row of out".
std::string meaning_of(const LazyKernel& kernel);

}  // namespace plumb::cases
