// SPDX-License-Identifier: Apache-2.0
//
// Quantised results. A code is the rounding of a number that an implementation has computed with
// some error: near a rounding boundary two codes are honest. This says which, and how often the
// other one is to be expected.
#pragma once

#include <cstdint>

#include "reference/bound.h"
#include "reference/formats/e4m3.h"

namespace plumb::reference {

enum class CodeFormat {
  e4m3fn,    // nearest even, saturating
  e4m3fnuz,  // the same; no negative zero
  // Nearest, saturating: ties to even, down towards zero, or away from it; with a negative zero, or
  // without.
  e2m1,
  e2m1_down,
  e2m1_unsigned_zero,
  e2m1_down_unsigned_zero,
  e2m1_away,
  e2m1_away_unsigned_zero,
  ue8m0,       // least power of two that is not smaller; 1..254
  ue8m0_down,  // greatest power of two that is not larger; 0..254
  bf16         // nearest even
};
CodeFormat code_format(Dialect dialect);

std::uint16_t encode(CodeFormat format, double value);
double decode(CodeFormat format, std::uint16_t code);
// Rises with the value; -0 comes right before +0. Codes of NaN have no place: see is_nan.
int order_of(CodeFormat format, std::uint16_t code);
bool is_nan(CodeFormat format, std::uint16_t code);

// An honest code is  encode(through(value + shift + e)),  |e| <= before.arithmetic(i).
struct CodeEstimate {
  CodeFormat format = CodeFormat::e4m3fn;
  Estimate before;                // in units of the code's scale; `output` and row_* unused
  Format through = Format::f64;   // an intermediate rounding, in the same units; f64 = none
  std::int64_t shared_error = 1;  // consecutive columns whose errors may be one and the same error
};

// Code of the exact value, and the codes that honest arithmetic can give besides.
struct HonestCodes {
  std::uint16_t exact = 0;
  bool nan = false;          // any code of NaN is right, and no other
  int least = 0, most = -1;  // order_of the honest codes; none if the error is not a number
  double flip = 0;           // probability of another code than `exact`; 1 where it is not known
};
HonestCodes honest_codes(const CodeEstimate& estimate, std::int64_t i);

// The least error before the rounding that turns the exact value's code into one at `order`, as a
// share of the largest honest error. Only for honest codes.
double flip_effort(const CodeEstimate& estimate, std::int64_t i, int order);

// The most codes that honest arithmetic flips, except with probability exp(-18), which is also what
// 6 sigma are to a normal error. `expected` is the sum of their probabilities; codes that share an
// error flip together, at most `together` of them. By Chernoff's bound for a sum of independent
// parts of [0, b] with mean E,  P(sum >= k) <= exp(-(k ln(k / E) - k + E) / b)  for k > E.
std::int64_t most_honest_flips(double expected, std::int64_t together);

}  // namespace plumb::reference
