// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "reference/formats/bfloat16.h"

namespace plumb::reference {

namespace {

constexpr double kLeastNormalF32 = 0x1p-126;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kGroup = 4;  // columns of fn that lie side by side

// Error of x with the low `bits` of its fp32 significand rounded away, and whether that was a tie.
struct OperandRounding {
  float error = 0;
  bool tie = false;
};

OperandRounding round_operand(float x, int bits, bool truncated) {
  const auto raw = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t unit = 1U << bits;
  const std::uint32_t below = raw & (unit - 1);
  if (!truncated && below == unit / 2) return {0, true};
  const std::uint32_t kept = raw - below + (!truncated && below > unit / 2 ? unit : 0);
  return {std::bit_cast<float>(kept) - x, false};
}

int dropped_bits(Format format) {
  switch (format) {
    case Format::tf32:
    case Format::tf32_truncated: return 13;
    case Format::bf16: return 16;
    default: return 0;
  }
}

// Relative size of a rounding that `factor` causes: none if it is a power of two.
double scaling_error(double factor, double unit) {
  int exponent = 0;
  return std::abs(std::frexp(factor, &exponent)) == 0.5 ? 0 : unit;
}

// Mean error of adding the terms one by one to sums that end at `last`: what each term leaves of
// the sum's spacing, in each of the binades that the sum goes through, by the share of additions
// that fall into it. Ties go to even, and squares leave the sum even for long: all of them may go
// one way. Nor are signs trusted across binades.
double rounding_bias(const std::vector<double>& terms, double last, double unit) {
  constexpr int kBinades = 6;              // each lower one counts a quarter
  constexpr double kToInteger = 0x1.8p52;  // adding and subtracting it rounds to an integer
  if (!(last > 0) || !std::isfinite(last)) return 0;
  double bias = 0;
  for (int binade = 0; binade < kBinades; ++binade) {
    const double least = std::ldexp(1.0, std::ilogb(last) - binade);
    const double share = (binade == 0 ? last - least : least) / last;
    const double spacing = 2 * unit * least;
    double left = 0, ties = 0;
    for (const double term : terms) {
      const double steps = term / spacing;
      const double error = (steps + kToInteger) - kToInteger - steps;
      if (std::abs(error) == 0.5) {
        ties += 0.5;
      } else {
        left += error;
      }
    }
    bias += share * (std::abs(left) + ties) * spacing;
  }
  return bias;
}

// Sums of S_k^2 over the partial sums of the usual orders: ascending, in one chain, or dealt out to
// two or four lanes. Over all orders that sum has a long tail (two lanes that cancel each other may
// each be far from zero), and in a million elements some lie far out on it.
class InterleavedSums {
 public:
  void add(std::int64_t k, double term) {
    const auto lane = static_cast<int>(k % 4);
    lanes_[lane] += term;
    const double pair = lanes_[lane] + lanes_[lane ^ 2];
    const double all = pair + lanes_[lane ^ 1] + lanes_[lane ^ 3];
    four_ += lanes_[lane] * lanes_[lane];
    two_ += pair * pair;
    one_ += all * all;
  }
  // Of the orders that have at least `chains` chains.
  double largest(int chains) const {
    return std::max({chains <= 1 ? one_ : 0, chains <= 2 ? two_ : 0, chains <= 4 ? four_ : 0});
  }

 private:
  double lanes_[4] = {};
  double one_ = 0, two_ = 0, four_ = 0;
};

double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

}  // namespace

std::vector<double> load_token(const Streams& streams, std::int64_t token) {
  std::vector<double> x(static_cast<std::size_t>(kStreams * streams.hidden));
  for (int slot = 0; slot < kStreams; ++slot) {
    const std::uint16_t* from =
        streams.data + token * streams.token_stride + slot * streams.slot_stride;
    std::transform(from, from + streams.hidden, x.begin() + slot * streams.hidden, decode_bf16);
  }
  return x;
}

double rounding_variance(double unit) { return unit * unit / 3; }

double function_error(const Numerics& numerics) { return numerics.function_ulp * 2 * kUnitF32; }

MixWeights::MixWeights(const float* fn, int columns, std::int64_t depth, const Numerics& numerics)
    : columns_(columns), depth_(depth), numerics_(numerics) {
  const auto size = static_cast<std::size_t>(columns * depth);
  const int bits = dropped_bits(numerics.product);
  const bool truncated = numerics.product == Format::tf32_truncated;
  exact_.resize(size);
  if (bits > 0) rounding_.resize(size);
  for (int c = 0; c < columns; ++c) {
    for (std::int64_t k = 0; k < depth; ++k) {
      const float weight = fn[c * depth + k];
      exact_[at(c, k)] = weight;
      if (bits == 0) continue;
      const OperandRounding rounded = round_operand(weight, bits, truncated);
      rounding_[at(c, k)] = rounded.error;
      if (!rounded.tie) continue;
      doubt_.resize(size);
      doubt_[at(c, k)] = static_cast<float>(unit_roundoff(numerics.product)) * weight;
    }
  }
}

std::size_t MixWeights::at(int column, std::int64_t k) const {
  return static_cast<std::size_t>((column / kGroup * depth_ + k) * kGroup + column % kGroup);
}

std::vector<Uncertain> MixWeights::mixes(const std::vector<double>& x, std::int64_t begin,
                                         std::int64_t end) const {
  const double product_error = numerics_.product == Format::f32 ? kUnitF32 : 0;
  std::vector<Uncertain> result(columns_);
  for (int group = 0; group < columns_; group += kGroup) {
    double sum[kGroup] = {}, magnitude[kGroup] = {}, square[kGroup] = {};
    InterleavedSums orders[kGroup];
    const float* weight = &exact_[at(group, 0)];
    for (std::int64_t k = begin; k < end; ++k) {
      for (int i = 0; i < kGroup; ++i) {
        const double product = x[k] * weight[kGroup * k + i];
        sum[i] += product;
        magnitude[i] += std::abs(product);
        square[i] += product * product;
        orders[i].add(k - begin, product);
      }
    }
    for (int i = 0; i < kGroup; ++i) {
      const SumError added =
          mean_sum_error(end - begin, sum[i], magnitude[i], square[i], numerics_);
      result[group + i].value = sum[i];
      const double squared_sums = orders[i].largest(numerics_.chains);
      const double unit = unit_roundoff(numerics_.accumulator);
      result[group + i].variance =
          std::max(added.sigma * added.sigma, rounding_variance(unit) * squared_sums) +
          rounding_variance(product_error) * square[i];
      result[group + i].worst = added.worst + product_error * magnitude[i];
    }
  }
  add_operand_roundings(x, begin, end, result);
  return result;
}

void MixWeights::add_operand_roundings(const std::vector<double>& x, std::int64_t begin,
                                       std::int64_t end, std::vector<Uncertain>& result) const {
  if (rounding_.empty()) return;
  for (int c = 0; c < columns_; ++c) {
    double shift = 0;
    for (std::int64_t k = begin; k < end; ++k) shift += x[k] * rounding_[at(c, k)];
    result[c].shift = shift;
    if (doubt_.empty()) continue;
    for (std::int64_t k = begin; k < end; ++k) {
      const double tie = std::abs(x[k] * doubt_[at(c, k)]);
      result[c].variance += tie * tie;
      result[c].worst += tie;
    }
  }
}

std::vector<double> MixWeights::magnitudes(const std::vector<double>& x) const {
  std::vector<double> sums(columns_);
  for (int c = 0; c < columns_; ++c) {
    for (std::int64_t k = 0; k < depth_; ++k) sums[c] += std::abs(x[k] * exact_[at(c, k)]);
  }
  return sums;
}

Uncertain square_sum(const std::vector<double>& x, std::int64_t begin, std::int64_t end,
                     const Numerics& numerics) {
  std::vector<double> terms(x.begin() + begin, x.begin() + end);
  double sum = 0, squares = 0, flushed = 0;
  InterleavedSums orders;
  for (double& term : terms) {
    term *= term;
    orders.add(&term - terms.data(), term);
    sum += term;
    squares += term * term;
    if (term < kLeastNormalF32) flushed += term;
  }
  // The square of a bf16 number is exact in fp32, unless it is subnormal and the device flushes it.
  const SumError added = mean_sum_error(end - begin, sum, sum, squares, numerics);
  const double ordered = std::sqrt(rounding_variance(unit_roundoff(numerics.accumulator)) *
                                   orders.largest(numerics.chains));
  const double n = std::max<double>(1, static_cast<double>(end - begin));
  const double chains = std::clamp<double>(numerics.chains, 1, n);
  const double bias =
      (1 - chains / n) * rounding_bias(terms, sum / chains, unit_roundoff(numerics.accumulator));
  // 6 sigma have room for the bias besides the random part.
  const double sigma = std::max(added.sigma, ordered) + bias / 6;
  return {sum, sigma * sigma + flushed * flushed, added.worst + flushed, 0, bias};
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
        factor * (slope * (std::abs(z.common) * r.systematic + function) + s * function);
  }
  for (int i = 0; i < kStreams; ++i) {
    for (int j = 0; j < kStreams; ++j) gates.covariance[i][j] += common[i] * common[j] * r.variance;
  }
  return gates;
}

}  // namespace plumb::reference
