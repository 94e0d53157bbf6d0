// SPDX-License-Identifier: Apache-2.0
//
// exp over an array, in plain arithmetic that compilers can vectorise. It gives the same bits with
// every compiler and on every machine, which libm does not promise.
#pragma once

#include <cstdint>

namespace plumb::reference {

// x[i] = exp(x[i]) for x[i] <= 700, with a relative error below 1e-15. Arguments below -700 are
// replaced by -700. NaN gives NaN.
void exp_in_place(double* x, std::int64_t count);

}  // namespace plumb::reference
