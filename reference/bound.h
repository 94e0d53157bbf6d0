// SPDX-License-Identifier: Apache-2.0
//
// What a reference returns: values in double precision and how far an honest implementation may be
// from them. Bounds follow from the numerics that an implementation declares; nobody types one.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace plumb::reference {

// Unit roundoffs: half the distance between neighbours, relative.
inline constexpr double kUnitBf16 = 0x1p-8;
inline constexpr double kUnitTf32 = 0x1p-11;
inline constexpr double kUnitTf32Truncated = 0x1p-10;
inline constexpr double kUnitF32 = 0x1p-24;
// A uniformly distributed rounding error has this standard deviation, in units of its largest
// value.
inline constexpr double kUniformSigma = 0.57735026918962576;  // 1/sqrt(3)
// A device may flush what is below; bf16 has the same exponent range.
inline constexpr double kLeastNormalF32 = 0x1p-126;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline double square(double x) { return x * x; }

enum class Format { f64, f32, tf32, tf32_truncated, bf16 };
double unit_roundoff(Format format);

// What adds up long products: matrix_unit.h has the units' arithmetic, matrix_error.h their errors.
enum class SumUnit { fp32, sm90_bf16, sm90_fp8, bits_24 };

// What an implementation promises (plumb/plumb_ops.h has the same in C).
struct Numerics {
  Format product = Format::f32;
  Format accumulator = Format::f32;
  int chains = 1;  // partial sums side by side, each sequential, combined by a tree
  Format probability = Format::bf16;
  double function_ulp = 2;
  SumUnit unit = SumUnit::fp32;
  int step = 0;  // products per instruction of the unit; 0 = the unit's own

  bool operator==(const Numerics&) const = default;
};

// Largest relative error of exp, rsqrt, a division and the like: an ulp is two roundoffs.
inline double function_error(const Numerics& numerics) {
  return numerics.function_ulp * 2 * kUnitF32;
}

// Rounding error of a floating-point sum: one standard deviation, and the most it can be.
struct SumError {
  double sigma = 0, worst = 0;
};
// Error of a sum of terms t: variance = of_squares * sum t^2 + of_total * (sum t)^2,
// worst = of_magnitudes * sum |t|, mean <= bias * |sum t|.
struct SumErrorFactors {
  double of_squares = 0, of_total = 0, of_magnitudes = 0, bias = 0;
};
// n terms with the given sum, sum of magnitudes and sum of squares, added as `numerics` says.
// sigma is the root mean square over all orders of the terms. It holds for data, and for terms
// sorted by magnitude; not for equal terms, whose roundings repeat each other, nor for terms of
// both signs sorted by value, whose sum first goes far away: these are structured
// (Estimate::structured).
SumError sum_error(std::int64_t terms, double sum, double magnitudes, double squares,
                   const Numerics& numerics);
// The same without the allowance for an unlucky order, for callers that know the partial sums of
// the orders in use and take the larger of the two.
SumError mean_sum_error(std::int64_t terms, double sum, double magnitudes, double squares,
                        const Numerics& numerics);

// Of an operand of a product that a factor multiplies in fp32 before it is stored in the format:
// relative to the operand, the bias towards zero.
struct OperandError {
  double sigma = 0, bias = 0, worst = 0;
};
OperandError scaled_operand_error(Format format);

// One floating-point tensor, rows x columns. A row is what a kernel computes as a unit: a token, a
// (token, head), a (token, slot).
//
// An honest result is  round(value + shift + e),  |e| <= arithmetic(i),  standard deviation sigma.
struct Estimate {
  std::int64_t rows = 0, columns = 0;
  Format output = Format::bf16;  // format of the stored result
  std::vector<double> value;     // exact, no intermediate rounding
  std::vector<double> sigma;     // standard deviation of the error before the output rounding
  std::vector<double> worst;     // the most that error can be; infinity where no closed form is had
  std::vector<double> shift;     // predictable part of intermediate roundings; empty = none
  // Per row: standard deviation of the mean over the row of sign(value) * e, with the correlations
  // between elements (an error shared by a whole row does not average out), and the allowance for
  // what the declared numerics bias (truncation, rounded constants).
  std::vector<double> row_mean_sigma;
  std::vector<double> row_systematic;
  // Per row, where its errors come from independent sources, each shared by all elements: largest
  // part of the row's variance that one source gives. 0: no more is known than row_mean_sigma says.
  std::vector<double> row_concentration;
  // Per row: the number, in fp32, by which all of its elements were multiplied, as the 1 / rms of a
  // norm. Rows with one number have one error of it. 0, or empty: none is known.
  std::vector<double> row_factor;
  bool structured = false;  // roundings are not independent (equal terms): only `worst` holds

  void resize(std::int64_t rows, std::int64_t columns);
  // Largest honest |e| of element i: min(6 sigma, worst), or worst alone where structured.
  double arithmetic(std::int64_t i) const;
  // Around what honest results of element i lie: value + shift.
  double centre(std::int64_t i) const;
  // Largest honest |result - centre|, output rounding and flushed subnormals included.
  double bound(std::int64_t i) const;
};

// Runs body(begin, end) over [0, count) on the machine's cores. The split never changes a result.
// Nested calls run inline. `set_thread_count(1)` keeps everything on the calling thread.
void set_thread_count(int threads);
void parallel_for(std::int64_t count, std::int64_t smallest_piece,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& body);

}  // namespace plumb::reference
