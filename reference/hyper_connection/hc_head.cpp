// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/hc_head.h"

#include <cmath>

#include "reference/hyper_connection/gated_sum.h"
#include "reference/hyper_connection/mix_weights.h"
#include "reference/rounding.h"

namespace plumb::reference {

namespace {

// Elements of x * r that an error of r may round to the other bf16 neighbour, as the change it
// makes.
struct Crossings {
  std::vector<double> likely, possible;  // within 6 sigma; within the worst case
};

Crossings crossings(const std::vector<double>& scaled, const std::vector<double>& rounded,
                    const Uncertain& r) {
  Crossings near{std::vector<double>(scaled.size()), std::vector<double>(scaled.size())};
  const double sigma = std::sqrt(r.variance + rounding_variance(kUnitF32));
  for (std::size_t k = 0; k < scaled.size(); ++k) {
    const double step = spacing(Format::bf16, scaled[k]);
    const double to_tie = step / 2 - std::abs(rounded[k] - scaled[k]);
    if (to_tie < 6 * sigma * std::abs(scaled[k])) near.likely[k] = step;
    if (to_tie < (r.worst + kUnitF32) * std::abs(scaled[k])) near.possible[k] = step;
  }
  return near;
}

// Mixes of the old variant, r already in them. Rounding x * r to bf16 is predictable but for the
// few elements that lie next to a tie.
std::vector<Uncertain> mixes_of_rounded(const MixWeights& weights, const std::vector<double>& x,
                                        const Uncertain& r) {
  std::vector<double> scaled(x.size()), rounded(x.size());
  for (std::size_t k = 0; k < x.size(); ++k) {
    scaled[k] = x[k] * r.value;
    rounded[k] = nearest(Format::bf16, scaled[k]);
  }
  const Crossings near = crossings(scaled, rounded, r);
  const std::vector<double> likely = weights.magnitudes(near.likely);
  const std::vector<double> possible = weights.magnitudes(near.possible);
  const std::vector<Uncertain> exact = weights.mixes(scaled, 0, weights.depth());
  std::vector<Uncertain> mixes = weights.mixes(rounded, 0, weights.depth());
  for (int c = 0; c < weights.columns(); ++c) {
    mixes[c].shift += mixes[c].value - exact[c].value;
    mixes[c].value = exact[c].value;
    mixes[c].variance += likely[c] * likely[c];
    mixes[c].worst += possible[c];
  }
  return mixes;
}

Gates gates_of(const HcHead& inputs, const MixWeights& weights, const std::vector<double>& x,
               const Numerics& numerics) {
  const Uncertain squares = square_sum(x, 0, weights.depth(), numerics);
  Uncertain r = rms_scale(squares, weights.depth(), inputs.rms_eps, numerics);
  std::vector<Uncertain> mixes;
  if (inputs.round_normalised) {
    mixes = mixes_of_rounded(weights, x, r);
    r = {.value = 1};
  } else {
    mixes = weights.mixes(x, 0, weights.depth());
  }
  std::array<Logit, kStreams> logits;
  for (int j = 0; j < kStreams; ++j) {
    logits[j] = logit(mixes[j], r, inputs.scale[0], inputs.base[j]);
  }
  return sigmoid_gates(logits.data(), r, 1, inputs.hc_eps, numerics);
}

}  // namespace

Estimate hc_head(const HcHead& inputs, const Numerics& numerics) {
  const Streams& streams = inputs.hidden_states;
  const MixWeights weights(inputs.fn, kStreams, kStreams * streams.hidden, numerics);
  Estimate out;
  out.resize(streams.tokens, streams.hidden);
  if (inputs.round_normalised || numerics.product != Format::f32) {
    out.shift.resize(out.value.size());
  }
  parallel_for(streams.tokens, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      const std::vector<double> x = load_token(streams, token);
      gated_sum(x, gates_of(inputs, weights, x, numerics), {}, numerics, token, out);
    }
  });
  return out;
}

}  // namespace plumb::reference
