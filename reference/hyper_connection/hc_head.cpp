// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/hc_head.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "reference/hyper_connection/gated_sum.h"
#include "reference/hyper_connection/mix_weights.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// Mixes (the four products of a token with fn) of the older variant, which multiplies fn with x * r
// rounded to bf16. The single error of r decides how all elements of x * r near a tie are rounded,
// so their errors add up linearly.
std::vector<Uncertain> mixes_of_rounded(const MixWeights& weights, const Tracked& scaled) {
  const Tracked stored = rounded(scaled, Format::bf16);
  std::vector<double> worst(stored.values().size());
  for (std::size_t k = 0; k < worst.size(); ++k) worst[k] = stored.node()->most(k);
  const std::vector<double> likely = weights.magnitudes(stored.node()->sigmas());
  const std::vector<double> possible = weights.magnitudes(worst);
  const std::vector<Uncertain> exact = weights.mixes(stored.values(), 0, weights.depth());
  std::vector<Uncertain> mixes = weights.mixes(stored.centres(), 0, weights.depth());
  for (std::size_t c = 0; c < mixes.size(); ++c) {
    mixes[c].shift += mixes[c].value - exact[c].value;
    mixes[c].value = exact[c].value;
    mixes[c].variance += square(likely[c]);
    mixes[c].worst += possible[c];
  }
  return mixes;
}

// Mixes: the four products of each token with fn, times the token's RMS scale r: [tokens, 4].
Tracked head_mixes(const HcHead& inputs, const MixWeights& weights, const Tracked& x,
                   const Numerics& numerics) {
  const std::int64_t count = x.sizes().front();
  const Tracked r = rms_scale(square_sums(x), weights.depth(), inputs.rms_eps);
  Estimate sums;
  sums.resize(count, kStreams);
  if (inputs.round_normalised || numerics.product != Format::f32) {
    sums.shift.resize(sums.value.size());
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const Tracked token = sliced(x, 0, i, 1);
    const std::vector<Uncertain> mixes = inputs.round_normalised
                                             ? mixes_of_rounded(weights, token * sliced(r, 0, i, 1))
                                             : weights.mixes(token.values(), 0, weights.depth());
    for (int c = 0; c < kStreams; ++c) {
      write(mixes[c], i * kStreams + c, sums);
      sums.row_systematic[i] = std::max(sums.row_systematic[i], mixes[c].systematic);
    }
  }
  Tracked mixes = with_errors(Tracked(sums.value, {count, kStreams}, numerics), sums);
  return inputs.round_normalised ? mixes : std::move(mixes) * r;
}

}  // namespace

Estimate hc_head(const HcHead& inputs, const Numerics& numerics) {
  const Streams& streams = inputs.hidden_states;
  const MixWeights weights(inputs.fn, kStreams, kStreams * streams.hidden, numerics);
  const Tracked scale({inputs.scale[0]}, {1}, numerics);
  const Tracked base({inputs.base, inputs.base + kStreams}, {kStreams}, numerics);
  return estimate_by_blocks(streams.tokens, tokens_per_block(streams.hidden), Format::bf16,
                            [&](std::int64_t begin, std::int64_t end) {
                              const Tracked x = load_tokens(streams, begin, end, numerics);
                              const Tracked mixes = head_mixes(inputs, weights, x, numerics);
                              return gated_sum(streams, begin, end,
                                               gates(mixes * scale + base) + inputs.hc_eps);
                            });
}

}  // namespace plumb::reference
