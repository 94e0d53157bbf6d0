// SPDX-License-Identifier: Apache-2.0
//
// Quantised results. A code is the rounding of a number that an implementation has computed with
// some error, so near a rounding boundary two codes are right. This file says which codes are
// right, and how often a code other than the exact one is to be expected.
#pragma once

#include <cstdint>

#include "reference/bound.h"
#include "reference/formats/e4m3.h"

namespace plumb::reference {

enum class CodeFormat {
  e4m3fn,    // nearest even, saturating
  e4m3fnuz,  // nearest even, saturating; no negative zero
  // Nearest, saturating. The suffix names the rule for ties (to even, down towards zero, or away
  // from zero) and whether a negative zero exists.
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
// Position of a code in the order of values: it rises with the value, and -0 comes right before +0.
// Codes of NaN have no position: see is_nan.
int order_of(CodeFormat format, std::uint16_t code);
bool is_nan(CodeFormat format, std::uint16_t code);

// A correct kernel stores encode(through(value + shift + e)), with |e| <= before.arithmetic(i).
struct CodeEstimate {
  CodeFormat format = CodeFormat::e4m3fn;
  Estimate before;                // in units of the code's scale; `output` and row_* unused
  Format through = Format::f64;   // intermediate rounding, in the same units; f64 = none
  std::int64_t shared_error = 1;  // consecutive columns that may share one error
};

// All codes that a correct kernel can store for one element.
struct HonestCodes {
  std::uint16_t exact = 0;   // code of Estimate::centre, the exact value + predictable roundings
  bool nan = false;          // only codes of NaN are right
  int least = 0, most = -1;  // order_of the right codes; an empty range if the error is NaN
  double flip = 0;           // probability of a code other than `exact`; 1 if unknown
};
HonestCodes honest_codes(const CodeEstimate& estimate, std::int64_t i);

// Smallest error before the rounding that changes the code of the exact value into the code at
// `order`, as a fraction of the largest error of a correct kernel. Only for codes in [least, most].
double flip_effort(const CodeEstimate& estimate, std::int64_t i, int order);

// Largest number of codes that a correct kernel flips, except with probability exp(-18), the
// probability of 6 sigma of a normal error. `expected` is the sum of the flip probabilities. Codes
// that share an error flip together, at most `together` of them. Chernoff's bound for a sum of
// independent terms in [0, b] with mean E: P(sum >= k) <= exp(-(k ln(k / E) - k + E) / b) for k >
// E.
std::int64_t most_honest_flips(double expected, std::int64_t together);

}  // namespace plumb::reference
