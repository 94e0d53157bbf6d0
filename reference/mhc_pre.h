// SPDX-License-Identifier: Apache-2.0
//
// mhc_pre: from four residual streams, the mixing coefficients of a sublayer and its input. Two
// stages with a visible intermediate, the per-split sums: what the device stored of it is judged,
// and its outputs are then judged on the bytes it stored; and once more from the inputs, end to
// end.
#pragma once

#include <cstdint>

#include "reference/bound.h"
#include "reference/gated_sum.h"
#include "reference/hyper_connection.h"

namespace plumb::reference {

inline constexpr int kMixes = 24;  // 4 pre, 4 post, 16 comb

struct MhcPre {
  Streams residual;
  const float* fn = nullptr;     // [24, 4 * hidden], K order (slot, hidden)
  const float* scale = nullptr;  // [3]: of pre, post, comb
  const float* base = nullptr;   // [24]
  FusedNorm norm;                // of layer_input
  int splits = 1;                // part s of K = 4 * hidden is [K s / splits, K (s + 1) / splits)
  int sinkhorn_iterations = 20;
  double rms_eps = 1e-6, pre_eps = 1e-6, sinkhorn_eps = 1e-6, post_mult = 2;
};

struct MhcPrePartials {
  Estimate mixes;        // rows split * tokens + token, 24 columns
  Estimate square_sums;  // the same rows, 1 column
};
struct MhcPreOutputs {
  Estimate post;         // tokens x 4
  Estimate comb;         // rows token * 4 + j, 4 columns
  Estimate layer_input;  // tokens x hidden
};

MhcPrePartials mhc_pre_partials(const MhcPre& inputs, const Numerics& numerics);
// Partials that a device stored, as exact numbers.
MhcPrePartials stored_partials(const MhcPre& inputs, const float* mixes, const float* square_sums);
MhcPreOutputs mhc_pre_outputs(const MhcPre& inputs, const MhcPrePartials& partials,
                              const Numerics& numerics);

}  // namespace plumb::reference
