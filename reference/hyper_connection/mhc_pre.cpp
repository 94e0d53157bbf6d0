// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/mhc_pre.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "reference/hyper_connection/mix_weights.h"
#include "reference/hyper_connection/sinkhorn.h"

namespace plumb::reference {

namespace {

constexpr int kComb = 8;           // first of the 16 comb logits
constexpr std::int64_t kTile = 8;  // tokens that share a reading of the weights

std::int64_t part_begin(std::int64_t depth, int splits, int part) { return depth * part / splits; }

void write(const Uncertain& from, std::int64_t i, Estimate& to) {
  to.value[i] = from.value;
  to.sigma[i] = std::sqrt(from.variance);
  to.worst[i] = from.worst;
  if (!to.shift.empty()) to.shift[i] = from.shift;
}

Uncertain read(const Estimate& from, std::int64_t row, std::int64_t column) {
  const std::int64_t i = row * from.columns + column;
  return {from.value[i], from.sigma[i] * from.sigma[i], from.worst[i],
          from.shift.empty() ? 0 : from.shift[i], from.row_systematic[row]};
}

// Elements of a row whose errors are independent of one another.
void write_independent_row_mean(std::int64_t row, Estimate& estimate) {
  double variance = 0;
  for (std::int64_t c = 0; c < estimate.columns; ++c) {
    const double sigma = estimate.sigma[row * estimate.columns + c];
    variance += sigma * sigma;
  }
  estimate.row_mean_sigma[row] = std::sqrt(variance) / static_cast<double>(estimate.columns);
}

MhcPrePartials empty_partials(const MhcPre& inputs) {
  MhcPrePartials partials;
  const std::int64_t rows = inputs.splits * inputs.residual.tokens;
  partials.mixes.resize(rows, kMixes);
  partials.square_sums.resize(rows, 1);
  partials.mixes.output = partials.square_sums.output = Format::f32;
  return partials;
}

void write_row(const std::vector<Uncertain>& mixes, const Uncertain& squares, std::int64_t row,
               MhcPrePartials& partials) {
  for (int c = 0; c < kMixes; ++c) write(mixes[c], row * kMixes + c, partials.mixes);
  write(squares, row, partials.square_sums);
  partials.square_sums.row_systematic[row] = squares.systematic;
  for (const Uncertain& mix : mixes) {
    partials.mixes.row_systematic[row] += mix.systematic / kMixes;
  }
  write_independent_row_mean(row, partials.mixes);
  write_independent_row_mean(row, partials.square_sums);
}

// Sums of the splits, in order.
struct TokenSums {
  std::array<Uncertain, kMixes> mixes;
  Uncertain square_sum;
};

TokenSums add_splits(const MhcPre& inputs, const MhcPrePartials& partials, std::int64_t token) {
  TokenSums sums;
  std::vector<Uncertain> parts(inputs.splits);
  const auto add = [&](const Estimate& from, std::int64_t column) {
    for (int s = 0; s < inputs.splits; ++s) {
      parts[s] = read(from, s * inputs.residual.tokens + token, column);
    }
    return add_in_order(parts);
  };
  for (int c = 0; c < kMixes; ++c) sums.mixes[c] = add(partials.mixes, c);
  sums.square_sum = add(partials.square_sums, 0);
  return sums;
}

void write_post(const Gates& post, std::int64_t token, Estimate& out) {
  double variance = 0, systematic = 0;
  for (int i = 0; i < kStreams; ++i) {
    write({post.value[i], post.covariance[i][i], post.worst[i], post.shift[i], 0},
          token * kStreams + i, out);
    for (int j = 0; j < kStreams; ++j) variance += post.covariance[i][j];
    systematic += post.systematic[i];
  }
  out.row_mean_sigma[token] = std::sqrt(variance) / kStreams;
  out.row_systematic[token] = systematic / kStreams;
}

SinkhornResult mix_streams(const MhcPre& inputs, const Logit* logits, double r_variance,
                           const Numerics& numerics) {
  Matrix4 value{};
  Covariance16 covariance{};
  double worst = 0;
  for (int i = 0; i < kCombEntries; ++i) {
    value[i] = logits[i].value + logits[i].shift;
    worst = std::max(worst, logits[i].worst);
    covariance[i][i] = logits[i].variance;
    for (int j = 0; j < kCombEntries; ++j) {
      covariance[i][j] += logits[i].common * logits[j].common * r_variance;
    }
  }
  return sinkhorn(value, covariance, worst, inputs.sinkhorn_iterations, inputs.sinkhorn_eps,
                  numerics);
}

Matrix4 unshifted(const MhcPre& inputs, const Logit* logits) {
  Matrix4 value{};
  for (int i = 0; i < kCombEntries; ++i) value[i] = logits[i].value;
  return sinkhorn(value, {}, 0, inputs.sinkhorn_iterations, inputs.sinkhorn_eps, {}).value;
}

// `relative`: how far an error of the same sign in all tokens may move an entry.
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
             comb.value[i] - value[i], 0},
            token * kCombEntries + i, out);
      for (int j = row * kStreams; j < (row + 1) * kStreams; ++j) variance += absolute[i][j];
      sum += value[i];
    }
    // A token's four rows share errors: whoever averages them as independent must not get less than
    // the token's own variance.
    const std::int64_t r = token * kStreams + row;
    out.row_mean_sigma[r] =
        std::sqrt(std::max(variance / (kStreams * kStreams), kStreams * token_variance));
    out.row_systematic[r] = 2 * relative * sum / kStreams;
  }
}

// What the fp32 streams' own errors add to the sums of a part, and that their squares, unlike those
// of bf16 numbers, are rounded. An error of x_k goes into all 24 mixes.
void add_errors_of_streams(const MhcPre& inputs, std::int64_t token, int split,
                           MhcPrePartials& partials) {
  const std::int64_t depth = inputs.depth();
  const std::int64_t row = split * inputs.residual.tokens + token;
  std::array<double, kMixes> variance{}, worst{};
  double common = 0, square_variance = 0, square_worst = 0;
  for (std::int64_t k = part_begin(depth, inputs.splits, split);
       k < part_begin(depth, inputs.splits, split + 1); ++k) {
    const std::int64_t at = token * depth + k;
    const double x = std::abs(inputs.unrounded->value[at]);
    const double sigma = inputs.unrounded->sigma[at], most = inputs.unrounded->worst[at];
    double together = 0;
    for (int c = 0; c < kMixes; ++c) {
      const double weight = inputs.fn[c * depth + k];
      variance[c] += weight * weight * sigma * sigma;
      worst[c] += std::abs(weight) * most;
      together += partials.mixes.value[row * kMixes + c] < 0 ? -weight : weight;
    }
    common += together * together * sigma * sigma;
    square_variance += 4 * x * x * sigma * sigma + rounding_variance(kUnitF32 * x * x);
    square_worst += (2 * x + most) * most + kUnitF32 * (x + most) * (x + most);
  }
  Estimate& squares = partials.square_sums;
  squares.sigma[row] = std::hypot(squares.sigma[row], std::sqrt(square_variance));
  squares.worst[row] += square_worst * (1 + static_cast<double>(depth) * kUnitF32);
  squares.row_mean_sigma[row] = squares.sigma[row];
  if (inputs.bf16_split) return;  // the mixes are of the stored streams
  for (int c = 0; c < kMixes; ++c) {
    const std::int64_t i = row * kMixes + c;
    partials.mixes.sigma[i] = std::hypot(partials.mixes.sigma[i], std::sqrt(variance[c]));
    partials.mixes.worst[i] += worst[c] * (1 + static_cast<double>(depth) * kUnitF32);
  }
  partials.mixes.row_mean_sigma[row] =
      std::hypot(partials.mixes.row_mean_sigma[row], std::sqrt(common) / kMixes);
}

std::vector<double> summed_token(const MhcPre& inputs, std::int64_t token) {
  if (!inputs.unrounded) return load_token(inputs.residual, token);
  const auto first = inputs.unrounded->value.begin() + token * inputs.depth();
  return {first, first + inputs.depth()};
}

// Tokens [begin, end), all splits.
void write_partials(const MhcPre& inputs, const MixWeights& weights, std::int64_t begin,
                    std::int64_t end, const Numerics& numerics, MhcPrePartials& partials) {
  std::vector<std::vector<double>> x, multiplied;
  for (std::int64_t t = begin; t < end; ++t) x.push_back(summed_token(inputs, t));
  for (std::int64_t t = begin; t < end; ++t) {
    multiplied.push_back(inputs.bf16_split ? load_token(inputs.residual, t) : x[t - begin]);
  }
  for (int s = 0; s < inputs.splits; ++s) {
    const std::int64_t first = part_begin(weights.depth(), inputs.splits, s);
    const std::int64_t last = part_begin(weights.depth(), inputs.splits, s + 1);
    const auto mixes = weights.mixes(multiplied.data(), end - begin, first, last);
    for (std::int64_t t = begin; t < end; ++t) {
      write_row(mixes[t - begin], square_sum(x[t - begin], first, last, numerics),
                s * inputs.residual.tokens + t, partials);
      if (inputs.unrounded) add_errors_of_streams(inputs, t, s, partials);
    }
  }
}

MhcPreOutputs empty_outputs(const MhcPre& inputs, bool shifted) {
  const std::int64_t tokens = inputs.residual.tokens;
  MhcPreOutputs out;
  out.post.resize(tokens, kStreams);
  out.comb.resize(tokens * kStreams, kStreams);
  out.layer_input.resize(tokens, inputs.residual.hidden);
  out.post.output = out.comb.output = Format::f32;
  if (shifted) {
    out.post.shift.resize(out.post.value.size());
    out.comb.shift.resize(out.comb.value.size());
  }
  if (shifted || inputs.norm.weight != nullptr) {
    out.layer_input.shift.resize(out.layer_input.value.size());
  }
  return out;
}

void write_token(const MhcPre& inputs, const MhcPrePartials& partials, const Numerics& numerics,
                 std::int64_t token, MhcPreOutputs& out) {
  const TokenSums sums = add_splits(inputs, partials, token);
  const Uncertain r = rms_scale(sums.square_sum, inputs.depth(), inputs.rms_eps, numerics);
  std::array<Logit, kMixes> logits;
  for (int c = 0; c < kMixes; ++c) {
    const float scale = inputs.scale[std::min(c / kStreams, 2)];
    logits[c] = logit(sums.mixes[c], r, scale, inputs.base[c]);
  }
  const Gates pre = sigmoid_gates(&logits[0], r, 1, inputs.pre_eps, numerics);
  const Gates post = sigmoid_gates(&logits[kStreams], r, inputs.post_mult, 0, numerics);
  const SinkhornResult comb = mix_streams(inputs, &logits[kComb], r.variance, numerics);
  write_post(post, token, out.post);
  double biased = 0;
  for (int i = kComb; i < kMixes; ++i) biased = std::max(biased, logits[i].systematic);
  write_comb(comb, out.comb.shift.empty() ? comb.value : unshifted(inputs, &logits[kComb]),
             function_error(numerics) + biased, token, out.comb);
  gated_sum(load_token(inputs.residual, token), pre, inputs.norm, numerics, token, out.layer_input);
}

}  // namespace

MhcPrePartials mhc_pre_partials(const MhcPre& inputs, const Numerics& numerics) {
  const std::int64_t tokens = inputs.residual.tokens;
  const auto form = inputs.bf16_split ? WeightForm::two_bf16 : WeightForm::product_format;
  const auto streams = inputs.scaled_streams ? StreamForm::scaled : StreamForm::stored;
  const MixWeights weights(inputs.fn, kMixes, inputs.depth(), numerics, form, streams);
  MhcPrePartials partials = empty_partials(inputs);
  if (inputs.bf16_split || numerics.product != Format::f32)
    partials.mixes.shift.resize(partials.mixes.value.size());
  parallel_for((tokens + kTile - 1) / kTile, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      write_partials(inputs, weights, tile * kTile, std::min(tokens, (tile + 1) * kTile), numerics,
                     partials);
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
  MhcPreOutputs out = empty_outputs(inputs, !partials.mixes.shift.empty());
  parallel_for(inputs.residual.tokens, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      write_token(inputs, partials, numerics, token, out);
    }
  });
  return out;
}

}  // namespace plumb::reference
