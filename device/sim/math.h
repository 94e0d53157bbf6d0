// SPDX-License-Identifier: Apache-2.0
//
// exp2, log2 and reciprocal square root of the simulated device: computed in double with +, -, *, /
// and square root only, then rounded once to float. libm is not used, because its bits depend on
// the machine. The error is at most 0.500001 ulp. Subnormal arguments and results are kept, NaN is
// the default quiet NaN.
#pragma once

namespace plumb::device::sim {

float exp2_rounded(float x);
float log2_rounded(float x);   // negative: NaN; zero: -infinity
float rsqrt_rounded(float x);  // negative: NaN; zero: infinity of its sign

}  // namespace plumb::device::sim
