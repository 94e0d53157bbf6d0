// SPDX-License-Identifier: Apache-2.0
//
// exp2, log2 and reciprocal square root of the simulated device: evaluated in double by +, -, *, /
// and square root alone, then rounded once to float. No libm, whose bits depend on the machine.
// Error at most 0.500001 ulp; subnormal arguments and results are kept, NaN is the default quiet
// NaN.
#pragma once

namespace plumb::device::sim {

float exp2_rounded(float x);
float log2_rounded(float x);   // negative: NaN; zero: -infinity
float rsqrt_rounded(float x);  // negative: NaN; zero: infinity of its sign

}  // namespace plumb::device::sim
