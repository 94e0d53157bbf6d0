// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/hyper_connection.h"

#include <algorithm>
#include <cmath>

#include "reference/four_doubles.h"
#include "reference/interleaved_sums.h"
#include "reference/matrix_error.h"

namespace plumb::reference {

namespace {

// Relative size of a rounding that `factor` causes: none if it is a power of two.
double scaling_error(double factor, double unit) {
  int exponent = 0;
  return std::abs(std::frexp(factor, &exponent)) == 0.5 ? 0 : unit;
}

// What rounding terms * scale to integers leaves: the sum of the errors, and half the number of
// ties, which are not in it.
struct LeftOver {
  double sum = 0, ties = 0;
};

PLUMB_FOR_ANY_TARGET void add_left_over(const double* terms, double scale, Four& sum, Four& ties) {
  constexpr double kToInteger = 0x1.8p52;  // adding and subtracting it rounds to an integer
  constexpr double kBelowTie = 0.5 - 0x1p-54;
  Four some, size;
  load(terms, some);
  const Four steps = some * scale;
  const Four error = ((steps + kToInteger) - kToInteger) - steps;
  magnitude_of(error, size);
  // Nothing but a tie is above the number below it, by 2^-54.
  const Four least = Four{} + kBelowTie;
  const Four is_tie = ((size > least ? size : least) - kBelowTie) * 0x1p54;
  sum += error - error * is_tie;
  ties += is_tie;
}

PLUMB_FOR_ANY_TARGET LeftOver add_all_left_over(const std::vector<double>& terms, double scale) {
  Four sum{}, ties{}, other_sum{}, other_ties{};  // neither pair waits for the other
  std::size_t i = 0;
  for (; i + 8 <= terms.size(); i += 8) {
    add_left_over(&terms[i], scale, sum, ties);
    add_left_over(&terms[i + 4], scale, other_sum, other_ties);
  }
  sum += other_sum;
  ties += other_ties;
  for (; i + 4 <= terms.size(); i += 4) add_left_over(&terms[i], scale, sum, ties);
  double rest[4] = {};
  std::copy(terms.begin() + static_cast<std::ptrdiff_t>(i), terms.end(), rest);
  add_left_over(rest, scale, sum, ties);
  return {(sum[0] + sum[1]) + (sum[2] + sum[3]), (ties[0] + ties[1] + ties[2] + ties[3]) / 2};
}

PLUMB_WIDE_TARGET LeftOver wide_left_over(const std::vector<double>& terms, double scale) {
  return add_all_left_over(terms, scale);
}

LeftOver left_over(const std::vector<double>& terms, double scale) {
  return has_wide_registers() ? wide_left_over(terms, scale) : add_all_left_over(terms, scale);
}

// Mean error of adding terms one by one.
struct RoundingBias {
  // What each term leaves of the sum's spacing, in each of the binades that the sum goes through,
  // by the share of additions that fall into it.
  double of_terms = 0;
  // What sums of few terms, exact until then, leave when they enter the last binade. Less than one
  // rounding of each, for which the random part has room.
  double of_sums = 0;
};

// Of `chains` sums that end at `last`. Ties go to even, and squares leave the sum even for long:
// all of them may go one way. Nor are signs trusted across binades.
RoundingBias rounding_bias(const std::vector<double>& terms, double chains, double last,
                           double unit) {
  constexpr int kBinades = 4;  // each lower one counts a quarter
  if (!(last > 0) || !std::isfinite(last)) return {};
  const double added = 1 - chains / static_cast<double>(terms.size());
  RoundingBias bias;
  for (int binade = 0; binade < kBinades; ++binade) {
    const double least = std::ldexp(1.0, std::ilogb(last) - binade);
    const double share = (binade == 0 ? last - least : least) / last;
    const double spacing = 2 * unit * least;
    const LeftOver left = left_over(terms, 1 / spacing);
    const double of_all = std::abs(left.sum) + left.ties;
    bias.of_terms += added * share * of_all * spacing;
    if (binade == 0) bias.of_sums = std::min(of_all, chains / 2) * spacing;
  }
  return bias;
}

// Squares of bf16 numbers, added up by a matrix unit.
Uncertain squares_of_unit(const TermSums& squares, std::int64_t terms, const Numerics& numerics) {
  constexpr int kSquareBits = 16;
  const MatrixError error = matrix_sum_error(terms, squares, kSquareBits, numerics);
  const double sigma = error.sigma + error.bias / 6;
  return {squares.sum, sigma * sigma, error.worst, 0, error.bias};
}

// A kernel that multiplies in a matrix unit may add up its squares there, or beside it.
Uncertain wider(const Uncertain& a, const Uncertain& b) {
  return {a.value, std::max(a.variance, b.variance), std::max(a.worst, b.worst), a.shift,
          std::max(a.systematic, b.systematic)};
}

double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

}  // namespace

std::vector<double> load_token(const Streams& streams, std::int64_t token) {
  std::vector<double> x(static_cast<std::size_t>(kStreams * streams.hidden));
  load_token(streams, token, x.data());
  return x;
}

void load_token(const Streams& streams, std::int64_t token, double* to) {
  for (int slot = 0; slot < kStreams; ++slot) {
    const std::uint16_t* from =
        streams.data + token * streams.token_stride + slot * streams.slot_stride;
    decode_bf16_array(from, streams.hidden, to + slot * streams.hidden);
  }
}

std::int64_t tokens_per_block(std::int64_t elements) {
  constexpr std::int64_t kElements = 1 << 12;
  return std::max<std::int64_t>(1, kElements / elements);
}

double rounding_variance(double unit) { return unit * unit / 3; }

Uncertain square_sum(const std::vector<double>& x, std::int64_t begin, std::int64_t end,
                     const Numerics& numerics) {
  std::vector<double> terms(x.begin() + begin, x.begin() + end);
  double sum = 0, squares = 0, flushed = 0;
  InterleavedSums<double> orders;
  const auto count = std::ssize(terms);
  const std::int64_t length = block_length(count);
  for (std::int64_t first = 0; first < count; first += length) {
    const std::int64_t last = std::min(first + length, count);
    double lanes[4] = {}, fourths = 0;
    for (std::int64_t k = first; k < last; ++k) {
      const double term = terms[k] * terms[k];
      terms[k] = term;
      lanes[(k - first) % 4] += term;
      fourths += term * term;
      flushed += term < kLeastNormalF32 ? term : 0;
    }
    orders.add_block(last - first, lanes, fourths);
    sum += (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    squares += fourths;
  }
  // The square of a bf16 number is exact in fp32, unless it is subnormal and the device flushes it.
  const SumError added = mean_sum_error(end - begin, sum, sum, squares, numerics);
  const double ordered =
      std::sqrt(rounding_variance(unit_roundoff(numerics.accumulator)) *
                largest_of_orders(numerics.chains, orders.one(), orders.two(), orders.four()));
  const double chains =
      std::clamp<double>(numerics.chains, 1, static_cast<double>(std::max(count, std::int64_t{1})));
  const RoundingBias bias =
      rounding_bias(terms, chains, sum / chains, unit_roundoff(numerics.accumulator));
  // 6 sigma have room for the bias besides the random part.
  const double sigma = std::max(added.sigma, ordered) + bias.of_terms / 6;
  const Uncertain by_fp32{.value = sum,
                          .variance = sigma * sigma + flushed * flushed,
                          .worst = added.worst + flushed,
                          .systematic = bias.of_terms + bias.of_sums};
  if (numerics.unit == SumUnit::fp32) return by_fp32;
  return wider(by_fp32, squares_of_unit({sum, sum, squares}, end - begin, numerics));
}

Uncertain add_in_order(const std::vector<Uncertain>& parts) {
  Uncertain total = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    total.value += parts[i].value;
    total.shift += parts[i].shift;
    total.systematic += parts[i].systematic;
    total.variance += parts[i].variance + rounding_variance(kUnitF32 * total.value);
    total.worst += parts[i].worst + kUnitF32 * std::abs(total.value);
  }
  total.worst *= 1 + static_cast<double>(parts.size()) * kUnitF32;  // roundings of rounded sums
  return total;
}

Uncertain rms_scale(const Uncertain& square_sum, std::int64_t count, double eps,
                    const Numerics& numerics) {
  const auto n = static_cast<double>(count);
  const double mean = square_sum.value / n;
  const double sum = mean + eps;
  const double function = function_error(numerics);
  const double variance =
      (square_sum.variance / (n * n) + rounding_variance(function * mean)) / (sum * sum) +
      rounding_variance(kUnitF32);
  const double worst = (square_sum.worst / n + function * mean) / sum + kUnitF32;
  return {1 / std::sqrt(sum), variance / 4 + rounding_variance(function),
          worst < 1 ? std::expm1(function - std::log1p(-worst) / 2) : kInfinity, 0,
          square_sum.systematic / n / sum / 2 + function};
}

Logit logit(const Uncertain& mix, const Uncertain& r, double scale, double base) {
  const double scaled = mix.value * r.value * scale;
  Logit z;
  z.value = scaled + base;
  z.common = scaled;
  z.shift = mix.shift * r.value * scale;
  const double gain = r.value * scale;
  z.systematic = std::abs(gain) * mix.systematic;
  z.variance = gain * gain * mix.variance + 2 * rounding_variance(kUnitF32 * scaled) +
               rounding_variance(kUnitF32 * z.value);
  z.worst = std::abs(gain) * mix.worst * (1 + r.worst) +
            (std::abs(scaled) + std::abs(z.shift)) * (r.worst + 2 * kUnitF32) +
            kUnitF32 * (std::abs(z.value) + std::abs(z.shift));
  z.worst *= 1 + 4 * kUnitF32;
  return z;
}

Gates sigmoid_gates(const Logit* logits, const Uncertain& r, double factor, double eps,
                    const Numerics& numerics) {
  const double function = function_error(numerics);
  const double scaling = scaling_error(factor, kUnitF32);
  Gates gates;
  std::array<double, kStreams> common{};
  for (int j = 0; j < kStreams; ++j) {
    const Logit& z = logits[j];
    const double s = sigmoid(z.value);
    const double slope = s * (1 - s);
    // exp2(-z log2 e): roundings of the product and of the constant, and the function's own error.
    const double exponent = 2 * rounding_variance(kUnitF32 * z.value) + rounding_variance(function);
    const double relative =
        rounding_variance(kUnitF32) + rounding_variance(function) + rounding_variance(scaling);
    const double gate = s * factor + eps;
    const double eps_added = eps == 0 ? 0 : kUnitF32 * gate;
    gates.value[j] = gate;
    gates.shift[j] = (sigmoid(z.value + z.shift) - s) * factor;
    gates.covariance[j][j] =
        factor * factor * (slope * slope * (z.variance + exponent) + s * s * relative) +
        rounding_variance(eps_added);
    common[j] = factor * slope * z.common;
    const double reach = z.worst + 2 * kUnitF32 * std::abs(z.value) + function;
    const double centre = z.value + z.shift;
    const double from_logit = std::max(sigmoid(centre + reach) - sigmoid(centre),
                                       sigmoid(centre) - sigmoid(centre - reach));
    const double rounded = std::expm1(kUnitF32 + function + scaling);
    gates.worst[j] = factor * (from_logit * (1 + rounded) + sigmoid(centre) * rounded) +
                     eps_added * (1 + rounded);
    gates.systematic[j] =
        factor *
        (slope * (std::abs(z.common) * r.systematic + z.systematic + function) + s * function);
  }
  for (int i = 0; i < kStreams; ++i) {
    for (int j = 0; j < kStreams; ++j) gates.covariance[i][j] += common[i] * common[j] * r.variance;
  }
  return gates;
}

}  // namespace plumb::reference
