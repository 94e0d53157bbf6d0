// SPDX-License-Identifier: Apache-2.0
//
// mhc_pre: from four residual streams, the mixing coefficients of a sublayer and its input. Two
// stages with a visible intermediate, the per-split sums: what the device stored of it is judged,
// and its outputs are then judged on the bytes it stored; and once more from the inputs, end to
// end.
#pragma once

#include <cstdint>

#include "reference/bound.h"
#include "reference/hyper_connection/gated_sum.h"
#include "reference/hyper_connection/hyper_connection.h"

namespace plumb::reference {

inline constexpr int kMixes = 24;  // 4 pre, 4 post, 16 comb

struct MhcPre {
  Streams residual;
  // Rows token * 4 + slot, `hidden` columns: the streams as a device has them in fp32, before it
  // stores them as `residual`. The sums are then of these; layer_input is always of `residual`.
  const Estimate* unrounded = nullptr;
  const float* fn = nullptr;  // [24, depth()], K order (slot, hidden)
  // The products are of `residual`, also where the square sum is of `unrounded`, and of each fn as
  // the sum of two bf16 numbers.
  bool bf16_split = false;
  bool scaled_streams = false;   // the products are of the streams times 1 / rms
  bool bf16_mixes = false;       // the products, their splits added, are rounded to bf16
  bool summed_weights = false;   // equal streams: fn is its sum over them, K only `hidden`
  const float* scale = nullptr;  // [3]: of pre, post, comb
  const float* base = nullptr;   // [24]
  FusedNorm norm;                // of layer_input
  int splits = 1;                // part s of K = depth() is [K s / splits, K (s + 1) / splits)
  int sinkhorn_iterations = 20;
  double rms_eps = 1e-6F, pre_eps = 1e-6F, sinkhorn_eps = 1e-6F, post_mult = 2;

  std::int64_t depth() const { return (summed_weights ? 1 : kStreams) * residual.hidden; }
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
