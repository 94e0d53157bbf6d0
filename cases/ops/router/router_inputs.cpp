// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/router/router_inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// A logit so low that its score is 0 in every arithmetic.
constexpr double kLow = -1000;

void store(HostTensor& logits, std::int64_t at, double value) {
  if (logits.spec().dtype == Dtype::f32) {
    logits.data<float>()[at] = static_cast<float>(value);
  } else {
    logits.data<std::uint16_t>()[at] = reference::encode_bf16(static_cast<float>(value));
  }
}

double garbage_logit(std::int64_t position) {
  if (position % 3 == 0) return kNan;
  return position % 3 == 1 ? kInfinity : 3e38;
}

// The logits of one row. A logit depends on these members and its expert alone.
struct RowStream {
  const RouterShape& shape;
  std::uint64_t seed;

  std::uint64_t bits(std::int64_t e) const { return random_bits(seed, e); }
  double normal(std::int64_t e) const { return 2 * cases::normal(mix(seed, 1), e); }
  std::int64_t group_of(std::int64_t e) const { return e / width(); }
  std::int64_t width() const { return shape.experts / shape.n_group; }
  // True for about `share` of 64 experts of a row; the seed chooses them.
  bool chosen(std::int64_t e, std::uint64_t share) const { return bits(e) % 64 < share; }
};

double equal_groups_logit(const RowStream& row, std::int64_t e) {
  const std::int64_t original = row.group_of(e) % 2 == 1 ? e - row.width() : e;
  return row.normal(original);
}

double adversarial_logit(const RowStream& row, LogitRow pattern, std::int64_t e) {
  const bool negative = row.bits(e) >> 32 & 1;
  switch (pattern) {
    case LogitRow::all_equal: return 0.75;
    case LogitRow::two_values: return negative ? -0.5 : 1.25;
    case LogitRow::equal_groups: return equal_groups_logit(row, e);
    case LogitRow::ties_at_the_cut:
      return row.chosen(e, 64 * row.shape.topk / (2 * row.shape.experts) + 1) ? 2 : -1;
    case LogitRow::coarse: return std::round(row.normal(e) * 8) / 8;
    case LogitRow::some_nan:
      return row.chosen(e, 2) ? std::copysign(kNan, negative ? -1 : 1) : row.normal(e);
    case LogitRow::some_infinite:
      return row.chosen(e, 2) ? (negative ? -kInfinity : kInfinity) : row.normal(e);
    case LogitRow::huge: return row.chosen(e, 2) ? (negative ? -1e30 : 1e30) : row.normal(e);
    case LogitRow::very_negative: return e % 64 < row.shape.topk - 1 && e < 64 ? 1 : kLow;
    case LogitRow::vanishing: return -25 + 15 * uniform(row.seed, e);
    case LogitRow::few_groups:
      return row.group_of(e) < row.shape.topk_group - 1 ? row.normal(e) : -kInfinity;
    case LogitRow::all_nan: return kNan;
    case LogitRow::all_low: return -kInfinity;
    case LogitRow::count: break;
  }
  return 0;
}

template <std::size_t n>
double one_of(const double (&values)[n], std::uint64_t bits) {
  return values[(bits >> 40) % n];
}

double edge_logit(const RowStream& row, EdgeRow pattern, std::int64_t e) {
  const bool few = row.chosen(e, 64 * row.shape.topk / (2 * row.shape.experts) + 1);
  switch (pattern) {
    case EdgeRow::overflowing: return few ? one_of({90, 1e4, 3e38}, row.bits(e)) : row.normal(e);
    case EdgeRow::above_20: return 25 + 35 * uniform(row.seed, e);
    case EdgeRow::vanishing:
      return few ? one_of({-8, -12, -16}, row.bits(e)) : one_of({-17, -20, -80}, row.bits(e));
    case EdgeRow::all_vanished: return one_of({-18, -20, -40, -80}, row.bits(e));
    case EdgeRow::count: break;
  }
  return 0;
}

double exact_logit(const RowStream& row, std::int64_t e) {
  // The experts of a pair have the same logit and the same bias, so that they are exact ties.
  return row.shape.exact_logits[row.bits(e / 2) % row.shape.exact_logits.size()];
}

double real_logit(const RowStream& row, std::int64_t e) {
  const double scale = std::ldexp(1, static_cast<int>(mix(row.seed, 7) % 6) - 3);
  return row.normal(e) * scale;
}

double logit(const RowStream& row, const Step& step, std::int64_t token, std::int64_t e) {
  if (step.fill == Fill::exact) return exact_logit(row, e);
  if (step.fill == Fill::real) return real_logit(row, e);
  const std::int64_t turn = static_cast<std::int64_t>(step.seed % 64) + token;
  if (row.shape.edges) {
    const auto pattern = turn % static_cast<std::int64_t>(EdgeRow::count);
    return edge_logit(row, static_cast<EdgeRow>(pattern), e);
  }
  const std::int64_t pattern = turn % static_cast<std::int64_t>(LogitRow::count);
  return adversarial_logit(row, static_cast<LogitRow>(pattern), e);
}

// Pairs of experts have biases in permuted order, in steps of 2^-9, so that different sums with one
// of the exact scores differ by at least 2^-9.
double exact_bias(const RouterShape& shape, std::uint64_t seed, std::int64_t e) {
  const std::int64_t pairs = (shape.experts + 1) / 2;
  std::int64_t multiplier = integer(seed, 0, 1, pairs) | 1;
  while (std::gcd(multiplier, pairs) != 1) multiplier += 2;
  return std::ldexp(static_cast<double>(e / 2 * multiplier % pairs), -9) - 0.25;
}

double adversarial_bias(const RouterShape& shape, const Step& step, std::uint64_t seed,
                        std::int64_t e) {
  const auto by_step = static_cast<BiasKind>(step.seed / 64 % static_cast<int>(BiasKind::count));
  const std::int64_t in_group = e % (shape.experts / shape.n_group);
  switch (shape.bias.value_or(by_step)) {
    case BiasKind::none: return 0;
    case BiasKind::same_in_groups: return 0.25 * normal(seed, in_group);
    case BiasKind::large: return 300 + std::round(4 * normal(seed, e));
    default: return -1.5 + 0.125 * normal(seed, e);
  }
}

std::optional<BiasKind> bias_named(const Row& row) {
  const std::string_view word = row.word("bias");
  if (word.empty()) return std::nullopt;
  return static_cast<BiasKind>(std::ranges::find(kBias.values, word) - kBias.values.begin());
}

}  // namespace

std::vector<Parameter> router_parameters(std::int64_t experts, std::int64_t topk,
                                         std::int64_t scale_permille) {
  return {
      {"tokens", 5, 0, 1 << 20, "rows"},
      {"experts", experts, 1, 1024, "columns of the logits"},
      {"topk", topk, 1, 32, "experts per token"},
      {"row_gap", 0, 0, 1 << 20, "elements between rows of the logits, guarded"},
      {"bf16", 0, 0, 1, "1: bf16 logits"},
      {"renormalize", 1, 0, 1, "1: weights add up to the scale"},
      {"scale_permille", scale_permille, 1, 1 << 20, "routed scaling factor, in thousandths", true},
      kOutGap};
}

void RouterShape::read(const Row& row) {
  bias = bias_named(row);
  edges = row.word("logits") == "softplus_edges";
  if (topk > experts) throw BadRow(row.where + ": topk above experts");
}

std::vector<double> exact_softplus_logits(const reference::SoftplusRules& rules) {
  if (rules.linear_above_20) return {-1000, 64, 256};
  return {-1000, 64};
}

void fill_router_logits(const RouterShape& shape, const Step& step, HostTensor& logits) {
  for (std::int64_t token = 0; token < shape.tokens; ++token) {
    const std::int64_t begin = token * shape.row_stride;
    const RowStream row{shape, mix(step.seed, 64 + token)};
    for (std::int64_t e = 0; e < shape.experts && token < step.live; ++e) {
      store(logits, begin + e, logit(row, step, token, e));
    }
    if (token + 1 == shape.tokens) break;
    for (std::int64_t e = shape.experts; e < shape.row_stride; ++e) {
      store(logits, begin + e, garbage_logit(begin + e));
    }
  }
  fill_dead(logits, step.live, shape.tokens, step.dead_rows);
}

void fill_router_bias(const RouterShape& shape, const Step& step, HostTensor& bias) {
  const std::uint64_t seed = mix(step.seed, 3);
  for (std::int64_t e = 0; e < shape.experts; ++e) {
    double value = 0.1 * normal(seed, e) - static_cast<double>(step.seed % 2);
    if (step.fill == Fill::exact) value = exact_bias(shape, seed, e);
    if (step.fill == Fill::adversarial) value = adversarial_bias(shape, step, seed, e);
    bias.data<float>()[e] = static_cast<float>(value);
  }
}

reference::Logits router_logits(const RouterShape& shape, const HostTensor& logits) {
  return {logits.bytes().data(), shape.bf16, shape.tokens, shape.experts, shape.row_stride};
}

RowMask rows_without_nan(const reference::Logits& logits) {
  RowMask mask;
  for (std::int64_t token = 0; token < logits.tokens; ++token) {
    mask.push_back(!logits.has_nan(token));
  }
  return mask;
}

double router_token_cost(const RouterShape& shape, double reductions, double sweeps,
                         const device::Properties& device) {
  constexpr double kThreadStart = 10, kScore = 60;
  const double steps = std::log2(device.wave_size);
  return device.wave_size * (kThreadStart + reductions * steps * kShuffleCost) +
         sweeps * kScore * static_cast<double>(shape.experts);
}

}  // namespace plumb::cases
