// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/hyper_connection/hyper_connection.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"

namespace plumb::cases {

namespace {

constexpr int kFirstPost = 4, kFirstComb = 8;

enum PreSalt : std::uint64_t {
  kNorms = 1,
  kStreamValues,
  kWeights,
  kScales,
  kBases,
  kChoices,
  kNorm
};
enum PostSalt : std::uint64_t { kPost = 102, kComb };

template <class Word>
Word word_of(const Row& row, const WordParameter& parameter) {
  const std::string_view word = row.word(parameter.name);
  if (word.empty()) return Word{};
  return static_cast<Word>(std::ranges::find(parameter.values, word) - parameter.values.begin());
}

double token_scale(const Step& step, Norms norms, std::int64_t token) {
  if (norms == Norms::ramp) return 1 + static_cast<double>(token);
  const std::uint64_t seed = mix(step.seed, kNorms);
  const auto exponent = static_cast<int>(integer(seed, token, -10, 9));
  return std::ldexp(1 + uniform(seed, ~static_cast<std::uint64_t>(token)), exponent);
}

// The element with index k along K of an adversarial token.
double adversarial_value(const Step& step, std::int64_t token, std::int64_t k, std::int64_t depth,
                         bool has_eps) {
  const std::uint64_t seed = mix(mix(step.seed, kStreamValues), token);
  const std::int64_t spike = integer(mix(step.seed, kChoices), token, 0, depth - 1);
  const bool zero_allowed = has_eps;
  switch ((token + static_cast<std::int64_t>(step.seed % 6)) % 6) {
    case 0: return zero_allowed ? 0 : 1;
    case 1: return 1.1015625;
    case 2: return k % 2 == 0 ? 0.8984375 : -0.8984375;
    case 3: return k == spike ? 8192 : 0;
    case 4: return std::ldexp(normal(seed, k), 40);
    default: return std::ldexp(normal(seed, k), has_eps ? -70 : -40);
  }
}

void fill_token(const Step& step, const StreamsFill& how, std::int64_t token, std::int64_t slots,
                HostTensor& streams) {
  const std::uint64_t seed = mix(mix(step.seed, kStreamValues), token);
  const std::int64_t first = token * slots, hidden = streams.columns();
  if (step.fill == Fill::real) {
    const RealFill real{token_scale(step, how.norms, token), false, true};
    return fill_real(streams, first, first + slots, seed, real);
  }
  const auto exponent = static_cast<int>(integer(mix(step.seed, kNorms), token, -6, 6));
  for (std::int64_t k = 0; k < slots * hidden; ++k) {
    const double value = step.fill == Fill::exact
                             ? std::ldexp(random_bits(seed, k) % 2 == 0 ? 1.0 : -1.0, exponent)
                             : adversarial_value(step, token, k, slots * hidden, how.has_eps);
    streams.row<std::uint16_t>(first + k / hidden)[k % hidden] = reference::encode_bf16(value);
  }
}

// Smallest power of two that is at least sqrt(n). Dividing by it keeps exact weights exact.
double scale_of_sum(std::int64_t n) {
  double scale = 1;
  while (scale * scale < static_cast<double>(n)) scale *= 2;
  return scale;
}

double base_of(const Step& step, LogitRange logits, std::int64_t column) {
  const std::uint64_t seed = mix(step.seed, kBases);
  const double usual = normal(seed, column);
  const std::int64_t turn = integer(mix(step.seed, kChoices), ~0ULL, 0, 3);
  const std::int64_t entry = column - kFirstComb;
  const bool comb = column >= kFirstComb;
  switch (logits) {
    case LogitRange::wide: return 3 * usual;
    case LogitRange::equal: return comb ? 0.5 : usual;
    case LogitRange::one_hot: return comb ? ((entry / 4 + turn) % 4 == entry % 4 ? 40 : 0) : usual;
    case LogitRange::huge:
      if (!comb) return column < kFirstPost ? -30 - 3 * uniform(seed, column) : 90 * usual;
      return entry % 4 == turn ? 70 + 40 * uniform(seed, column) : usual;
    case LogitRange::saturated:
      if (comb) return usual;
      return (column + turn) % 2 == 0 ? 95 + 30 * uniform(seed, column)
                                      : -95 - 30 * uniform(seed, column);
    default: return usual;
  }
}

}  // namespace

Norms norms_of(const Row& row) { return word_of<Norms>(row, kNormsWord); }

LogitRange logits_of(const Row& row) { return word_of<LogitRange>(row, kLogitsWord); }

std::vector<Parameter> stream_parameters() {
  return {{"tokens", 4, 0, 1 << 20, "padded tokens"},
          {"hidden", 4096, 1, 65536, "width of a stream"},
          {"slot_gap", 0, 0, 65536, "elements between two slots of a token"},
          {"token_gap", 0, 0, 1 << 20, "elements between two tokens"},
          kOutGap};
}

FloatOfInteger negative_power_of_ten(std::string parameter) {
  const auto value = [](std::int64_t exponent) {
    if (exponent == 0) return 0.0F;
    double power = 1;
    for (std::int64_t i = 0; i < exponent; ++i) power *= 10;
    return static_cast<float>(1 / power);
  };
  return {std::move(parameter), value, 30};
}

void check_trivial_tokens(const Row& row) {
  if ((row.integer("tokens") == 0) == (row.trivial == "empty")) return;
  throw BadRow(row.where + ": trivial = \"empty\" belongs to tokens = 0, and only there");
}

void fill_streams(const Step& step, const StreamsFill& how, HostTensor& streams) {
  const std::int64_t slots = streams.spec().shape.size() == 3 ? kStreams : 1;
  for (std::int64_t token = 0; token < step.live; ++token) {
    fill_token(step, how, token, slots, streams);
  }
  fill_dead(streams, step.live * slots, streams.rows(), step.dead_rows);
  paint_gaps(streams);
}

void fill_mixing(const Step& step, LogitRange logits, HostTensor& fn, HostTensor& scale,
                 HostTensor& base) {
  const double weight = 1 / scale_of_sum(fn.columns());
  const std::uint64_t seed = mix(step.seed, kWeights);
  if (step.fill == Fill::exact) {
    fill_integers(fn, 0, fn.rows(), seed, 2);
    float* values = fn.data<float>();
    for (std::int64_t i = 0; i < fn.elements(); ++i) values[i] *= static_cast<float>(weight);
  } else {
    fill_real(fn, 0, fn.rows(), seed, {weight, false, false});
  }
  for (std::int64_t i = 0; i < scale.elements(); ++i) {
    const double usual = 0.75 + uniform(mix(step.seed, kScales), i);
    const bool none = i == 2 && (logits == LogitRange::equal);
    scale.data<float>()[i] = static_cast<float>(none                         ? 0
                                                : logits == LogitRange::wide ? 4 * usual
                                                                             : usual);
  }
  for (std::int64_t c = 0; c < base.elements(); ++c) {
    base.data<float>()[c] = static_cast<float>(base_of(step, logits, c));
  }
}

void fill_coefficients(const Step& step, std::int64_t token, float* post, float* comb) {
  const std::uint64_t post_seed = mix(mix(step.seed, kPost), token);
  const std::uint64_t comb_seed = mix(mix(step.seed, kComb), token);
  const bool real = step.fill == Fill::real;
  const std::int64_t turn = integer(comb_seed, 0, 1, 3);
  for (std::int64_t n = 0; n < kStreams; ++n) {
    const double gate = uniform(post_seed, n);
    post[n] = static_cast<float>(real ? 2 * gate : gate < 0.5 ? 0 : 2);
  }
  for (std::int64_t i = 0; i < kStreams * kStreams; ++i) {
    const bool on_cycle = (i / kStreams + turn) % kStreams == i % kStreams;
    comb[i] = static_cast<float>(real ? uniform(comb_seed, 1 + i) / 2 : on_cycle ? 1 : 0);
  }
  if (!real) comb[kStreams * turn] = 1e-6F;
}

void fill_norm_weight(const Step& step, HostTensor& weight) {
  for (std::int64_t h = 0; h < weight.elements(); ++h) {
    weight.data<std::uint16_t>()[h] =
        reference::encode_bf16(1 + 0.1 * normal(mix(step.seed, kNorm), h));
  }
}

bool promises_dead(const Step& step, bool has_eps) {
  return step.dead_rows == DeadRows::foreign || (step.dead_rows == DeadRows::zero && has_eps);
}

RowMask promised_tokens(const Step& step, bool has_eps, std::int64_t tokens,
                        std::int64_t rows_per_token, std::int64_t repeats) {
  if (promises_dead(step, has_eps)) return {};
  RowMask mask;
  for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
    mask.insert(mask.end(), step.live * rows_per_token, true);
    mask.insert(mask.end(), (tokens - step.live) * rows_per_token, false);
  }
  return mask;
}

void adapt_linear_sum(const Step& step, reference::Estimate& estimate) {
  if (step.fill == Fill::exact) {
    for (auto* errors :
         {&estimate.sigma, &estimate.worst, &estimate.row_mean_sigma, &estimate.row_systematic}) {
      std::fill(errors->begin(), errors->end(), 0);
    }
  }
  adapt_coefficients(step, estimate);
}

void adapt_coefficients(const Step& step, reference::Estimate& estimate) {
  if (step.fill == Fill::adversarial) estimate.structured = true;
}

void adapt_gated_sum(const Step& step, reference::Estimate& estimate) {
  if (step.fill != Fill::real) estimate.structured = true;
}

double token_threads(std::int64_t hidden) {
  const std::int64_t vectors = (hidden + 7) / 8, rounds = (vectors + 255) / 256;
  return 32.0 * std::ceil(static_cast<double>((vectors + rounds - 1) / rounds) / 32);
}

}  // namespace plumb::cases
