// SPDX-License-Identifier: Apache-2.0
#include "reference/router/router.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "reference/tracked/other_forms.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// 1 for each element that satisfies the condition, else 0.
Tracked where(const Tracked& a, const auto& condition) {
  std::vector<double> holds;
  for (const double x : a.values()) holds.push_back(condition(x) ? 1 : 0);
  return {std::move(holds), a.sizes(), *a.node()->numerics};
}

// Operand whose exact softplus is the fp32 softplus of x: -infinity (softplus 0) if e^x underflows,
// or if 1 + e^x rounds to 1 whatever the error of e^x; +infinity if e^x overflows; else x.
double softplus_operand(double x, const SoftplusRules& rules, double function) {
  constexpr double kUnderflow = -104, kLost = -16.635532333438686;  // ln of 2^-150, 2^-24
  constexpr double kOverflow = 88.72283935546875;
  if (std::isnan(x)) return rules.nan_is_zero ? -kInfinity : x;
  if (x < kUnderflow || (!rules.log1p && x + function <= kLost * (1 + 2 * kUnitF32))) {
    return -kInfinity;
  }
  return !rules.linear_above_20 && x > kOverflow ? kInfinity : x;
}

// scores / their sum. Clamped to [0, 1 + error], because a sum that may be 0 has an unbounded
// relative error.
Tracked renormalised(Tracked scores, Divisor divisor) {
  if (divisor == Divisor::one) return scores;
  Tracked total = sum(scores, 1);
  if (divisor == Divisor::sum_and_1e_20) total = std::move(total) + 1e-20;
  const double most = 1 + 2 * function_error(*scores.node()->numerics);
  Tracked quotient = clamp(scores / total, 0, most);
  if (divisor != Divisor::sum_if_positive) return quotient;
  return select(where(total, [](double x) { return x > 0; }), std::move(quotient), scores);
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

double Logits::at_expert(std::int64_t token, std::int32_t expert) const {
  return has(expert) ? at(token, expert) : -kInfinity;
}

bool Logits::has_all(const std::int32_t* ids, std::int64_t count) const {
  return std::all_of(ids, ids + count, [&](std::int32_t id) { return has(id); });
}

bool Logits::has_nan(std::int64_t token) const {
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    if (std::isnan(at(token, expert))) return true;
  }
  return false;
}

Tracked sqrt_softplus_scores(const Tracked& logits, const SoftplusRules& rules) {
  const Numerics& numerics = *logits.node()->numerics;
  std::vector<double> operands = logits.values();
  for (double& x : operands) x = softplus_operand(x, rules, function_error(numerics));
  const Tracked x(std::move(operands), logits.sizes(), numerics);
  const Tracked e = exp_by_exp2(x);
  Tracked softplus = rules.log1p ? log1p(e) : log_by_log2(e + 1);
  if (rules.linear_above_20) {
    softplus = select(where(x, [](double a) { return a > 20; }), x, std::move(softplus));
  }
  return sqrt_by_rsqrt(std::move(softplus));
}

Tracked RouterRows::array(
    const std::function<double(std::int64_t token, std::int64_t column)>& of) const {
  Numerics in_any_order = *numerics;
  in_any_order.chains = 1;
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>((end - begin) * columns));
  for (std::int64_t token = begin; token < end; ++token) {
    for (std::int64_t column = 0; column < columns; ++column) values.push_back(of(token, column));
  }
  return {std::move(values), {end - begin, columns}, in_any_order};
}

void for_token_blocks(std::int64_t tokens, std::int64_t columns, const Numerics& numerics,
                      const std::function<void(const RouterRows& rows)>& body) {
  // About 1024 elements per block: the C library reuses the memory of small arrays instead of
  // returning it to the system.
  const std::int64_t block = std::max<std::int64_t>(1, 1024 / std::max<std::int64_t>(1, columns));
  parallel_for((tokens + block - 1) / block, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      body({i * block, std::min(tokens, (i + 1) * block), columns, &numerics});
    }
  });
}

Estimate weights_of(const ChosenExperts& experts, const Numerics& numerics) {
  constexpr std::int64_t kBlock = 128;
  Estimate all = estimate_by_blocks(
      experts.tokens, kBlock, Format::f32, [&](std::int64_t begin, std::int64_t end) {
        const RouterRows rows{begin, end, experts.topk, &numerics};
        Tracked weights = renormalised(experts.scores(rows), experts.divisor) * experts.scale;
        return select(rows.array(experts.is_chosen), std::move(weights),
                      rows.array(experts.otherwise));
      });
  all.columns = experts.topk;  // even if there are no tokens
  return all;
}

std::uint64_t identity_of_bits(const Logits& logits, const float* bias, std::int64_t token,
                               std::int64_t expert) {
  return std::uint64_t{logits.bits(token, expert)} << 32 |
         std::bit_cast<std::uint32_t>(bias[expert]);
}

}  // namespace plumb::reference
