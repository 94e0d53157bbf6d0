// SPDX-License-Identifier: Apache-2.0
//
// exp over an array, in plain arithmetic that a compiler can vectorise and that gives the same bits
// with every compiler and on every machine, which libm does not promise.
#pragma once

#include <cstdint>

namespace plumb::reference {

// x[i] = exp(x[i]) for x <= 700, relative error below 1e-15; arguments below -700 count as -700.
// NaN gives NaN.
void exp_in_place(double* x, std::int64_t count);

}  // namespace plumb::reference
