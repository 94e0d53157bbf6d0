// SPDX-License-Identifier: Apache-2.0
//
// Functions in the forms that GPUs compute them in. tracked.h has each within its own ulp.
#pragma once

#include "reference/tracked/tracked.h"

namespace plumb::reference {

// exp2(a * log2(e)): the product and its constant are rounded, so that the error grows with |a|.
Tracked exp_by_exp2(Tracked a);
// log2(a) * ln(2): in addition the logarithm of what is near 1 has the error of one that is 1. That
// of an exact 1 is exact.
Tracked log_by_log2(Tracked a);
// log(1 + a), without the rounding of the sum below 1; from there on by log2
Tracked log1p(Tracked a);
// a * rsqrt(a), or sqrt(a)
Tracked sqrt_by_rsqrt(Tracked a);
// 1 / (1 + e^-a) by exp2, or tanh(a / 2) / 2 + 1/2, whose error is absolute: what is left of a
// small result is then noise.
Tracked sigmoid_by_exp2_or_tanh(Tracked a);

}  // namespace plumb::reference
