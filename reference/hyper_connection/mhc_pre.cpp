// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/mhc_pre.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "reference/hyper_connection/mix_weights.h"
#include "reference/hyper_connection/sinkhorn.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

constexpr int kComb = 8;            // first of the 16 comb logits
constexpr std::int64_t kTile = 32;  // tokens computed together, so that weights are prepared once

std::int64_t part_begin(std::int64_t depth, int splits, int part) { return depth * part / splits; }

MhcPrePartials empty_partials(const MhcPre& inputs) {
  MhcPrePartials partials;
  const std::int64_t rows = inputs.splits * inputs.residual.tokens;
  partials.mixes.resize(rows, kMixes);
  partials.square_sums.resize(rows, 1);
  partials.mixes.output = partials.square_sums.output = Format::f32;
  return partials;
}

// Sums over the splits, added in order: [tokens, columns].
Tracked add_splits(const MhcPre& inputs, const Estimate& parts, const Numerics& numerics) {
  const std::int64_t tokens = inputs.residual.tokens, count = tokens * parts.columns;
  const auto part = [&](std::int64_t split) {
    const auto first = parts.value.begin() + split * count;
    return with_errors(Tracked({first, first + count}, {tokens, parts.columns}, numerics), parts,
                       split * tokens);
  };
  Tracked total = part(0);
  for (int split = 1; split < inputs.splits; ++split) total = std::move(total) + part(split);
  return total;
}

// mixes * r * scale + base: [tokens, 24].
struct MixLogits {
  Tracked mixes, r, logits;
};
MixLogits logits_of(const MhcPre& inputs, const MhcPrePartials& partials,
                    const Numerics& numerics) {
  std::vector<double> scale;
  for (int c = 0; c < kMixes; ++c) scale.push_back(inputs.scale[std::min(c / kStreams, 2)]);
  Tracked mixes = add_splits(inputs, partials.mixes, numerics);
  if (inputs.bf16_mixes) mixes = rounded(std::move(mixes), Format::bf16);
  Tracked r =
      rms_scale(add_splits(inputs, partials.square_sums, numerics), inputs.depth(), inputs.rms_eps);
  Tracked logits = mixes * r * Tracked(std::move(scale), {kMixes}, numerics) +
                   Tracked({inputs.base, inputs.base + kMixes}, {kMixes}, numerics);
  return {std::move(mixes), std::move(r), std::move(logits)};
}

// Sinkhorn result of a token. `logits` is [tokens, 24]; its last 16 columns are those of comb.
SinkhornResult mix_streams(const MhcPre& inputs, const TrackedNode& logits, std::int64_t token,
                           const Numerics& numerics) {
  const auto first = static_cast<std::size_t>(token * kMixes + kComb);
  Matrix4 centre{};
  Covariance16 covariance{};
  double worst = 0;
  for (std::size_t i = 0; i < kCombEntries; ++i) {
    centre[i] = logits.centre(first + i);
    worst = std::max(worst, logits.most(first + i));
    for (const ErrorSource& source : logits.sources) {
      const double effect = source.effect[first + i];
      for (std::size_t j = 0; j < kCombEntries; ++j) {
        if (i == j || !source.varies(1)) covariance[i][j] += effect * source.effect[first + j];
      }
    }
  }
  return sinkhorn(centre, covariance, worst, inputs.sinkhorn_iterations, inputs.sinkhorn_eps,
                  numerics);
}

Matrix4 unshifted(const MhcPre& inputs, const TrackedNode& logits, std::int64_t token) {
  Matrix4 value{};
  std::copy_n(logits.values.begin() + token * kMixes + kComb, kCombEntries, value.begin());
  return sinkhorn(value, {}, 0, inputs.sinkhorn_iterations, inputs.sinkhorn_eps, {}).value;
}

// Stores a token's 4 x 4 comb and its errors. `relative`: largest relative change of an entry by an
// error that has the same sign in all tokens.
void write_comb(const SinkhornResult& comb, const Matrix4& value, double relative,
                std::int64_t token, Estimate& out) {
  Covariance16 absolute = comb.covariance;
  double token_variance = 0;
  for (int i = 0; i < kCombEntries; ++i) {
    for (int j = 0; j < kCombEntries; ++j) {
      absolute[i][j] *= comb.value[i] * comb.value[j];
      token_variance += absolute[i][j];
    }
  }
  token_variance /= kCombEntries * kCombEntries;
  for (int row = 0; row < kStreams; ++row) {
    double variance = 0, sum = 0;
    for (int i = row * kStreams; i < (row + 1) * kStreams; ++i) {
      write({value[i], absolute[i][i], comb.value[i] * std::expm1(comb.worst),
             comb.value[i] - value[i]},
            token * kCombEntries + i, out);
      for (int j = row * kStreams; j < (row + 1) * kStreams; ++j) variance += absolute[i][j];
      sum += value[i];
    }
    // A token's four rows share errors. An average that treats the rows as independent must still
    // get at least the variance of the token's mean.
    const std::int64_t r = token * kStreams + row;
    out.row_mean_sigma[r] =
        std::sqrt(std::max(variance / (kStreams * kStreams), kStreams * token_variance));
    out.row_systematic[r] = 2 * relative * sum / kStreams;
  }
}

// False if a square sum of the token is past fp32's range: its logits may then be anything.
bool has_limited_logits(const TrackedNode& logits, std::int64_t token) {
  const auto first = static_cast<std::size_t>(token * kMixes + kComb);
  for (std::size_t i = first; i < first + kCombEntries; ++i) {
    if (!std::isfinite(logits.most(i))) return false;
    for (const ErrorSource& source : logits.sources) {
      if (!std::isfinite(square(source.effect[i]))) return false;
    }
  }
  return true;
}

// Stores a token's comb if its logits may be anything: each entry is a number up to 1.
void write_any_comb(const Matrix4& value, std::int64_t token, Estimate& out) {
  constexpr double kMost = 1 + 4 * kUnitF32;
  for (int i = 0; i < kCombEntries; ++i) {
    write({.value = value[i], .variance = kMost, .worst = kMost}, token * kCombEntries + i, out);
  }
  for (std::int64_t row = token * kStreams; row < (token + 1) * kStreams; ++row) {
    out.row_mean_sigma[row] = out.row_systematic[row] = kMost;
  }
}

// Partial sums of tokens [begin, end) for one split. `unrounded`: streams that the sums use if they
// are not the stored ones.
void write_partials(const MhcPre& inputs, const MixWeights& weights,
                    const std::optional<Tracked>& unrounded, std::int64_t begin, std::int64_t end,
                    int split, const Numerics& numerics, MhcPrePartials& partials) {
  const std::int64_t first = part_begin(inputs.depth(), inputs.splits, split);
  const std::int64_t count = part_begin(inputs.depth(), inputs.splits, split + 1) - first;
  const std::int64_t row = split * inputs.residual.tokens + begin;
  const Tracked stored = load_tokens(inputs.residual, begin, end, first, count, numerics);
  const Tracked x =
      unrounded ? sliced(sliced(*unrounded, 1, first, count), 0, begin, end - begin) : stored;
  write_rows(*square_sums(x).node(), row, partials.square_sums);
  write_rows(*weights.mixes(inputs.bf16_split ? stored : x).node(), row, partials.mixes);
}

// comb as [tokens * 4, 4]. An error of r does not change the mean of a row, because each row of
// comb has the sum 1.
Estimate mixed_streams(const MhcPre& inputs, const MixLogits& all, const Numerics& numerics) {
  const TrackedNode& logits = *all.logits.node();
  Estimate comb;
  comb.resize(inputs.residual.tokens * kStreams, kStreams);
  comb.output = Format::f32;
  if (!logits.centres.empty()) comb.shift.resize(comb.value.size());
  parallel_for(inputs.residual.tokens, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      if (!has_limited_logits(logits, token)) {
        write_any_comb(unshifted(inputs, logits, token), token, comb);
        continue;
      }
      const SinkhornResult mixed = mix_streams(inputs, logits, token, numerics);
      const double biased =
          all.mixes.node()->one_sided(static_cast<std::size_t>(token * kMixes)) *
          std::abs(all.r.values()[static_cast<std::size_t>(token)] * inputs.scale[2]);
      write_comb(mixed, comb.shift.empty() ? mixed.value : unshifted(inputs, logits, token),
                 function_error(numerics) + biased, token, comb);
    }
  });
  return comb;
}

}  // namespace

MhcPrePartials mhc_pre_partials(const MhcPre& inputs, const Numerics& numerics) {
  const std::int64_t tokens = inputs.residual.tokens;
  const auto form = inputs.bf16_split ? WeightForm::two_bf16 : WeightForm::product_format;
  const auto streams = inputs.scaled_streams ? StreamForm::scaled : StreamForm::stored;
  std::vector<MixWeights> weights;
  for (int split = 0; split < inputs.splits; ++split) {
    weights.emplace_back(
        inputs.fn, kMixes, inputs.depth(), part_begin(inputs.depth(), inputs.splits, split),
        part_begin(inputs.depth(), inputs.splits, split + 1), numerics, form, streams);
  }
  std::optional<Tracked> unrounded;
  if (inputs.unrounded) {
    unrounded = with_errors(Tracked(inputs.unrounded->value, {tokens, inputs.depth()}, numerics),
                            *inputs.unrounded);
  }
  MhcPrePartials partials = empty_partials(inputs);
  if (inputs.bf16_split || numerics.product != Format::f32)
    partials.mixes.shift.resize(partials.mixes.value.size());
  const std::int64_t tiles = (tokens + kTile - 1) / kTile;
  parallel_for(tiles * inputs.splits, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t tile = i / inputs.splits * kTile, split = i % inputs.splits;
      write_partials(inputs, weights[static_cast<std::size_t>(split)], unrounded, tile,
                     std::min(tokens, tile + kTile), static_cast<int>(split), numerics, partials);
    }
  });
  return partials;
}

MhcPrePartials stored_partials(const MhcPre& inputs, const float* mixes, const float* square_sums) {
  MhcPrePartials partials = empty_partials(inputs);
  std::copy_n(mixes, partials.mixes.value.size(), partials.mixes.value.begin());
  std::copy_n(square_sums, partials.square_sums.value.size(), partials.square_sums.value.begin());
  return partials;
}

MhcPreOutputs mhc_pre_outputs(const MhcPre& inputs, const MhcPrePartials& partials,
                              const Numerics& numerics) {
  const Streams& streams = inputs.residual;
  const MixLogits all = logits_of(inputs, partials, numerics);
  const Tracked pre = gates(sliced(all.logits, 1, 0, kStreams)) + inputs.pre_eps;
  const Tracked post = gates(sliced(all.logits, 1, kStreams, kStreams)) * inputs.post_mult;
  return {.post = estimate_of(post, Format::f32),
          .comb = mixed_streams(inputs, all, numerics),
          .layer_input = estimate_by_blocks(
              streams.tokens, tokens_per_block(streams.hidden), Format::bf16,
              [&](std::int64_t begin, std::int64_t end) {
                return gated_sum(streams, begin, end, sliced(pre, 0, begin, end - begin),
                                 inputs.norm);
              })};
}

}  // namespace plumb::reference
