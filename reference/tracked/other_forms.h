// SPDX-License-Identifier: Apache-2.0
//
// Functions in the forms that GPUs use. In tracked.h each function has only its own error in ulp.
#pragma once

#include "reference/tracked/tracked.h"

namespace plumb::reference {

// exp2(a * log2(e)): the product and the constant are rounded, so the error grows with |a|.
Tracked exp_by_exp2(Tracked a);
// log2(a) * ln(2). In addition, the logarithm of a number near 1 has the absolute error of a result
// of 1. The logarithm of an exact 1 is exact.
Tracked log_by_log2(Tracked a);
// log(1 + a). For a < 1 the sum is not rounded; for a >= 1 it is log2 of the rounded sum.
Tracked log1p(Tracked a);
// a * rsqrt(a), or sqrt(a)
Tracked sqrt_by_rsqrt(Tracked a);
// 1 / (1 + e^-a) by exp2, or tanh(a / 2) / 2 + 1/2. The error of the second form is absolute, so
// small results are mostly noise.
Tracked sigmoid_by_exp2_or_tanh(Tracked a);

}  // namespace plumb::reference
