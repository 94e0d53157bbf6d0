// SPDX-License-Identifier: Apache-2.0
//
// What a reference returns: exact values in double precision, and how far a correct implementation
// may be from each value. Bounds follow from the numerics that an implementation declares. No
// tolerance is set by hand.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace plumb::reference {

// Unit roundoff of each format: the largest relative error of one rounding, which is half the
// distance between neighbouring numbers (the whole distance for truncation).
inline constexpr double kUnitBf16 = 0x1p-8;
inline constexpr double kUnitTf32 = 0x1p-11;
inline constexpr double kUnitTf32Truncated = 0x1p-10;
inline constexpr double kUnitF32 = 0x1p-24;
// Standard deviation of a uniformly distributed rounding error, as a fraction of its largest value.
inline constexpr double kUniformSigma = 0.57735026918962576;  // 1/sqrt(3)
// Smallest normal fp32 number. A device may flush smaller numbers to zero. bf16 has the same
// exponent range.
inline constexpr double kLeastNormalF32 = 0x1p-126;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline double square(double x) { return x * x; }

enum class Format { f64, f32, tf32, tf32_truncated, bf16 };
double unit_roundoff(Format format);

// The unit that adds up long products. matrix_unit.h emulates each unit, and matrix_error.h bounds
// its errors.
enum class SumUnit { fp32, sm90_bf16, sm90_fp8, bits_24 };

// What an implementation promises about its arithmetic. plumb_numerics (plumb/ops/types.h) is the
// C struct; it has further promises, such as `deterministic`.
struct Numerics {
  Format product = Format::f32;
  Format accumulator = Format::f32;
  int chains = 1;  // parallel partial sums, each sequential, combined by a tree
  Format probability = Format::bf16;
  double function_ulp = 2;
  SumUnit unit = SumUnit::fp32;
  int step = 0;  // products per instruction of the unit; 0 = the unit's default
  // sparse_mla_prefill in separate steps: format of the results between them; f32 = one kernel.
  Format score = Format::f32;

  bool operator==(const Numerics&) const = default;
};

// Largest relative error of exp, rsqrt, a division and similar functions. One ulp is two unit
// roundoffs.
inline double function_error(const Numerics& numerics) {
  return numerics.function_ulp * 2 * kUnitF32;
}

// Rounding error of a floating-point sum: its standard deviation and its largest possible size.
struct SumError {
  double sigma = 0, worst = 0;
};
// Error of a sum of terms t, as factors: variance = of_squares * sum t^2 + of_total * (sum t)^2,
// worst = of_magnitudes * sum |t|, mean <= bias * |sum t|.
struct SumErrorFactors {
  double of_squares = 0, of_total = 0, of_magnitudes = 0, bias = 0;
};
// Rounding error of adding `terms` numbers with this sum, sum of magnitudes and sum of squares, as
// `numerics` declares. sigma is the root mean square over all orders of the terms. It holds for
// random data and for terms sorted by magnitude. It does not hold for equal terms, whose roundings
// repeat, nor for terms of both signs sorted by value, whose partial sums become large: their
// estimates must set Estimate::structured.
SumError sum_error(std::int64_t terms, double sum, double magnitudes, double squares,
                   const Numerics& numerics);
// sum_error without the allowance for an unlucky order, for callers that know the partial sums of
// the orders in use and take the larger of the two errors.
SumError mean_sum_error(std::int64_t terms, double sum, double magnitudes, double squares,
                        const Numerics& numerics);

// Error of an operand of a product that is multiplied by a factor in fp32 and then stored in
// `format`. All members are relative to the operand. `bias` points towards zero.
struct OperandError {
  double sigma = 0, bias = 0, worst = 0;
};
OperandError scaled_operand_error(Format format);

// One floating-point tensor of shape [rows, columns], with the error model of each element. A row
// is what a kernel computes as a unit: a token, a (token, head), a (token, slot).
//
// A correct kernel stores round(value + shift + e), with |e| <= arithmetic(i) and standard
// deviation sigma of e.
struct Estimate {
  std::int64_t rows = 0, columns = 0;
  Format output = Format::bf16;  // format of the stored result
  std::vector<double> value;     // exact, without intermediate roundings
  std::vector<double> sigma;     // standard deviation of the error before the output rounding
  std::vector<double> worst;     // largest |error|; infinity if unknown
  std::vector<double> shift;     // predictable part of the intermediate roundings; empty = none
  // Per row: standard deviation of the mean of sign(value) * e over the row. It includes
  // correlations between elements (an error shared by a whole row does not average out).
  // row_systematic is the allowance for biases of the declared numerics (truncation, rounded
  // constants).
  std::vector<double> row_mean_sigma;
  std::vector<double> row_systematic;
  // Per row: largest share of the row's variance that comes from one source, if its errors come
  // from independent sources that each affect all elements. 0: unknown, only row_mean_sigma holds.
  std::vector<double> row_concentration;
  // Per row: the fp32 number by which all elements of the row were multiplied, such as the 1 / rms
  // of a norm. Rows with equal factors share the error of the factor. 0 or empty: unknown.
  std::vector<double> row_factor;
  bool structured = false;  // roundings are dependent (equal terms): only `worst` holds

  void resize(std::int64_t rows, std::int64_t columns);
  // Largest |e| of element i in a correct kernel: min(6 sigma, worst), or worst if `structured`.
  double arithmetic(std::int64_t i) const;
  // Centre of the correct results of element i: value + shift.
  double centre(std::int64_t i) const;
  // Largest |result - centre| of a correct kernel, including output rounding and flushed
  // subnormals.
  double bound(std::int64_t i) const;
};

// parallel_for runs body(begin, end) over [0, count) on the machine's cores, in pieces of at least
// `smallest_piece`. Results do not depend on how the range is split. Nested calls run on the
// calling thread. `set_thread_count(1)` keeps all work on the calling thread.
void set_thread_count(int threads);
void parallel_for(std::int64_t count, std::int64_t smallest_piece,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& body);

}  // namespace plumb::reference
