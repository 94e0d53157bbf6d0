// SPDX-License-Identifier: Apache-2.0
#include "reference/router/router.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "reference/formats/bfloat16.h"

namespace plumb::reference {

namespace {

double variance(double largest) { return square(largest * kUniformSigma); }

// Relative error of e^x by exp2(x log2 e): the function's, and roundings of product and constant.
struct FunctionError {
  double variance = 0, worst = 0;
};
FunctionError error_of_exp(double x, double function) {
  const double argument = kUnitF32 * std::abs(x);
  return {variance(function) + 2 * variance(argument), function + 2 * argument};
}

// ln(1 + e^x) of a finite x. Unless it is a log1p, the sum is rounded near 1, and the logarithm of
// what is near 1 has the error of one that is 1.
Score softplus(double x, const SoftplusRules& rules, double function) {
  constexpr double kLinear = 20, kOverflow = 88.72283935546875;  // of e^x in fp32
  if (rules.linear_above_20 && x > kLinear) {
    const double worst = 2 * kUnitF32 * x;
    return {x, worst * kUniformSigma, worst};
  }
  if (x > kOverflow) return {std::numeric_limits<double>::infinity(), 0, 0};
  const double e = std::exp(x), t = 1 + e, value = std::log1p(e);
  const FunctionError exp = error_of_exp(x, function);
  const bool keeps_small = rules.log1p && x < 0;
  // 1 + e is 1, in every order of rounding, and the logarithm of 1 is 0.
  if (!keeps_small && e * (1 + exp.worst) <= kUnitF32) return {};
  const double sum = keeps_small ? 0 : kUnitF32;
  const double logarithm = function * (keeps_small ? value : std::max(value, 1.0));
  const double scaling = 2 * kUnitF32 * value;
  const double carried = square(e / t) * exp.variance + variance(sum) + square(kLeastNormalF32);
  return {value, std::sqrt(carried + variance(logarithm) + variance(scaling)),
          e / t * exp.worst + sum + logarithm + scaling + kLeastNormalF32};
}

// How far the square root moves when its argument does: more downwards than upwards.
double move_of_root(double x, double change) {
  const double root = std::sqrt(x);
  return std::max(std::sqrt(x + change) - root, root - std::sqrt(std::max(0.0, x - change)));
}

// What the weights of a row have in common. `additions` is the relative variance of the sum's own
// roundings in the order in which it grows fastest, from the largest score on.
struct ScoreSum {
  double value = 0, worst = 0, variance = 0, additions = 0;
};

ScoreSum sum_of(std::vector<Score> scores) {
  const auto falling = [](const Score& a, const Score& b) {  // NaN last
    return std::isnan(b.value) ? !std::isnan(a.value) : a.value > b.value;
  };
  std::sort(scores.begin(), scores.end(), falling);
  ScoreSum sum;
  double squares = 0;
  for (const Score& score : scores) {
    sum.value += score.value;
    sum.worst += score.worst;
    sum.variance += square(score.sigma);
    squares += sum.value > score.value ? square(sum.value) : 0;  // taking up the first is exact
  }
  if (sum.value > 0) sum.additions = variance(kUnitF32) * squares / square(sum.value);
  return sum;
}

double denominator(double sum, Divisor divisor) {
  if (divisor == Divisor::one) return 1;
  if (divisor == Divisor::sum_and_1e_20) return sum + 1e-20;
  if (divisor == Divisor::sum) return sum;
  return sum > 0 ? sum : 1;
}

// score / divisor with every score where it moves the quotient most, in both directions. A sum that
// may vanish leaves a quotient between 0 and 1.
double most_of_quotient(const Score& score, const ScoreSum& all, Divisor divisor) {
  if (divisor == Divisor::sum) divisor = Divisor::sum_if_positive;  // its value is above 0
  const double value = score.value / denominator(all.value, divisor);
  if (divisor == Divisor::one) return score.worst;
  const double others = all.value - score.value, others_worst = all.worst - score.worst;
  const double high = score.value + score.worst, low = std::max(0.0, score.value - score.worst);
  const double most = high / denominator(std::max(0.0, others - others_worst) + high, divisor);
  const double least = low / denominator(others + others_worst + low, divisor);
  return std::max(most - value, value - least);
}

// First order; only where no score's error is near the sum.
double variance_of_quotient(const Score& score, const ScoreSum& all, Divisor divisor) {
  if (divisor == Divisor::one) return square(score.sigma);
  const double d = denominator(all.value, divisor);
  const double own = (1 - score.value / d) / d, of_others = score.value / square(d);
  return square(own * score.sigma) + square(of_others) * (all.variance - square(score.sigma));
}

}  // namespace

std::uint32_t Logits::bits(std::int64_t token, std::int64_t expert) const {
  const std::int64_t i = token * row_stride + expert;
  if (bf16) return std::uint32_t{static_cast<const std::uint16_t*>(data)[i]} << 16;
  return std::bit_cast<std::uint32_t>(static_cast<const float*>(data)[i]);
}

double Logits::at(std::int64_t token, std::int64_t expert) const {
  return std::bit_cast<float>(bits(token, expert));
}

bool Logits::has_nan(std::int64_t token) const {
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    if (std::isnan(at(token, expert))) return true;
  }
  return false;
}

Score sigmoid_score(double x, const Numerics& numerics) {
  const double s = 1 / (1 + std::exp(-x));
  if (!std::isfinite(x)) return {s, 0, 0};
  const double function = function_error(numerics);
  const FunctionError exp = error_of_exp(x, function);
  const double of_tanh = function / 2 * std::abs(2 * s - 1);
  if (s == 0) return {0, of_tanh * kUniformSigma, of_tanh + kLeastNormalF32};
  const double relative = square(1 - s) * exp.variance + variance(kUnitF32) + variance(function);
  return {s, std::sqrt(square(s) * relative + variance(of_tanh)),
          s * std::expm1((1 - s) * exp.worst + kUnitF32 + function) + of_tanh + kLeastNormalF32};
}

Score sqrt_softplus_score(double x, const SoftplusRules& rules, const Numerics& numerics) {
  constexpr double kUnderflow = -104;  // e^x is below 2^-150
  if (std::isnan(x)) return rules.nan_is_zero ? Score{} : Score{x, 0, 0};
  if (x < kUnderflow) return {};
  if (std::isinf(x)) return {x, 0, 0};
  const double function = function_error(numerics);
  const Score sp = softplus(x, rules, function);
  if (sp.worst == 0) return {std::sqrt(sp.value), 0, 0};
  const double s = std::sqrt(sp.value);
  const double root = (function + kUnitF32) * s;  // x * rsqrt(x) is rounded once more
  const double six_sigma = move_of_root(sp.value, 6 * sp.sigma);
  return {s, std::hypot(six_sigma / 6, root * kUniformSigma),
          move_of_root(sp.value, sp.worst) + root + kLeastNormalF32};
}

Score add(const Score& score, double bias) {
  const double value = score.value + bias;
  if (!std::isfinite(value)) return {value, 0, 0};
  const double rounding = kUnitF32 * (std::abs(value) + score.worst);
  return {value, std::hypot(score.sigma, rounding * kUniformSigma), score.worst + rounding};
}

Score recovered(const Score& score, double bias) {
  if (!std::isfinite(score.value)) return score;
  const Score choice = add(score, bias);
  const double rounding = kUnitF32 * (score.value + choice.worst);
  return {score.value, std::hypot(choice.sigma, rounding * kUniformSigma), choice.worst + rounding};
}

Score rounded_to_bf16(const Score& score) {
  const auto rounded = [](double x) { return decode_bf16(encode_bf16(x)); };
  const double value = rounded(score.value);
  if (!std::isfinite(value)) return {value, 0, 0};
  const double most = std::max(rounded(score.value + score.worst) - value,
                               value - rounded(score.value - score.worst));
  return {value, most, most};
}

void store(const Score& score, std::uint64_t identity, Candidates& candidates, std::int64_t at) {
  candidates.score.value[at] = score.value;
  candidates.score.sigma[at] = score.sigma;
  candidates.score.worst[at] = score.worst;
  candidates.identity[at] = identity;
}

std::uint64_t identity_of_bits(const Logits& logits, const float* bias, std::int64_t token,
                               std::int64_t expert) {
  return std::uint64_t{logits.bits(token, expert)} << 32 |
         std::bit_cast<std::uint32_t>(bias[expert]);
}

bool are_experts(const std::int32_t* ids, std::int32_t count, std::int64_t experts) {
  return std::all_of(ids, ids + count, [&](std::int32_t id) { return id >= 0 && id < experts; });
}

void estimate_weights(const std::vector<Score>& scores, Divisor divisor, double scale,
                      const Numerics& numerics, std::int64_t row, Estimate& weights) {
  const ScoreSum sum = sum_of(scores);
  if (divisor == Divisor::sum_if_positive && std::isnan(sum.value)) divisor = Divisor::one;
  const double d = denominator(sum.value, divisor);
  const double function = function_error(numerics);
  const auto count = static_cast<double>(scores.size());
  // Roundings of the sum, of adding 1e-20 or comparing, of the quotient and of the product.
  const bool divides = divisor != Divisor::one;
  const double of_divisor = divides ? variance(function) + sum.additions : 0;
  const double relative = kUnitF32 * (divides ? count + 2 : 1) + (divides ? function : 0);
  // First-order errors need scores that are known well.
  const bool known = !divides || 16 * sum.worst < sum.value;
  double magnitudes = 0, own = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::int64_t at = row * weights.columns + static_cast<std::int64_t>(i);
    const double w = scores[i].value / d * scale;
    weights.value[at] = w;
    weights.sigma[at] = weights.worst[at] = 0;
    if (!std::isfinite(w) || (divides && !std::isfinite(sum.value))) continue;
    const double quotient = most_of_quotient(scores[i], sum, divisor) * std::abs(scale);
    weights.worst[at] = quotient * (1 + relative) + std::abs(w) * relative;
    const double spread = variance_of_quotient(scores[i], sum, divisor) * square(scale);
    weights.sigma[at] = known ? std::sqrt(spread + square(w) * (of_divisor + variance(kUnitF32)))
                              : weights.worst[at];
    magnitudes += std::abs(w);
    own += square(weights.sigma[at]);
  }
  weights.row_mean_sigma[row] =
      std::hypot(magnitudes / count * std::sqrt(of_divisor), std::sqrt(own) / count);
  // Functions may err to one side everywhere: exp, log or tanh, root, quotient.
  weights.row_systematic[row] = 4 * function * std::max(magnitudes / count, known ? 0.0 : 1.0);
}

}  // namespace plumb::reference
