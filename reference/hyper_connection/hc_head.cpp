// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/hc_head.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "reference/hyper_connection/gated_sum.h"
#include "reference/hyper_connection/mix_weights.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

constexpr std::int64_t kTile = 16;  // tokens whose gates are computed together

// Mixes (the four products of each token with fn) of the older variant, which multiplies fn with
// x * r rounded to bf16. The single error of r decides how all elements of x * r near a tie are
// rounded, so their errors add up linearly.
Tracked mixes_of_rounded(const MixWeights& weights, Tracked scaled) {
  const Tracked stored = rounded(std::move(scaled), Format::bf16);
  const TrackedNode& node = *stored.node();
  Estimate errors;
  errors.resize(stored.sizes().front(), kStreams);
  errors.sigma = weights.sums_of(errors.rows, node.sigmas(), std::abs);
  if (!node.worst.empty()) errors.worst = weights.sums_of(errors.rows, node.worst, std::abs);
  const Tracked exact(std::make_shared<TrackedNode>(
      TrackedNode{node.sizes, node.numerics, node.values, node.centres}));
  return with_errors(weights.mixes(exact), errors);
}

// sigmoid gates of tokens [begin, end), from the products of each token with fn, times the token's
// RMS scale r: [end - begin, 4].
Tracked head_gates(const HcHead& inputs, const MixWeights& weights, std::int64_t begin,
                   std::int64_t end, const Numerics& numerics) {
  const Tracked x = load_tokens(inputs.hidden_states, begin, end, 0,
                                kStreams * inputs.hidden_states.hidden, numerics);
  Tracked r = rms_scale(square_sums(x), x.sizes().back(), inputs.rms_eps);
  const Tracked mixes = inputs.round_normalised ? mixes_of_rounded(weights, x * std::move(r))
                                                : weights.mixes(x) * std::move(r);
  const Tracked scale({inputs.scale[0]}, {1}, numerics);
  const Tracked base({inputs.base, inputs.base + kStreams}, {kStreams}, numerics);
  return gates(mixes * scale + base) + inputs.hc_eps;
}

}  // namespace

Estimate hc_head(const HcHead& inputs, const Numerics& numerics) {
  const Streams& streams = inputs.hidden_states;
  const std::int64_t tokens = streams.tokens, depth = kStreams * streams.hidden;
  const MixWeights weights(inputs.fn, kStreams, depth, 0, depth, numerics);
  const std::int64_t block = tokens_per_block(streams.hidden);
  const std::int64_t tile = block * std::max<std::int64_t>(1, kTile / block);
  std::vector<std::optional<Tracked>> of_tiles(static_cast<std::size_t>(tokens / tile + 1));
  parallel_for(std::ssize(of_tiles), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      of_tiles[static_cast<std::size_t>(i)] =
          head_gates(inputs, weights, i * tile, std::min(tokens, (i + 1) * tile), numerics);
    }
  });
  return estimate_by_blocks(tokens, block, Format::bf16, [&](std::int64_t begin, std::int64_t end) {
    const Tracked& gates = *of_tiles[static_cast<std::size_t>(begin / tile)];
    return gated_sum(streams, begin, end, sliced(gates, 0, begin % tile, end - begin));
  });
}

}  // namespace plumb::reference
