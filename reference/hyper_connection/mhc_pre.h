// SPDX-License-Identifier: Apache-2.0
//
// mhc_pre: computes the mixing coefficients of a sublayer and its input from four residual streams.
// The kernel has two stages, and the per-split sums between them are stored. The stored sums are
// judged, and the outputs are judged twice: computed from the stored sums, and end to end from the
// inputs.
#pragma once

#include <cstdint>

#include "reference/bound.h"
#include "reference/hyper_connection/gated_sum.h"
#include "reference/hyper_connection/hyper_connection.h"

namespace plumb::reference {

inline constexpr int kMixes = 24;  // 4 pre, 4 post, 16 comb

struct MhcPre {
  Streams residual;
  // [tokens * 4, hidden], row token * 4 + slot: the streams in fp32, before the kernel stores them
  // as `residual`. If set, the sums use these streams. layer_input always uses `residual`.
  const Estimate* unrounded = nullptr;
  const float* fn = nullptr;  // [24, depth()], K order (slot, hidden)
  // The products use `residual`, even if the square sum uses `unrounded`, and each fn as the sum of
  // two bf16 numbers.
  bool bf16_split = false;
  bool scaled_streams = false;   // the products use the streams times 1 / rms
  bool bf16_mixes = false;       // the products, summed over splits, are rounded to bf16
  bool summed_weights = false;   // streams are equal: fn is summed over them, K = `hidden`
  const float* scale = nullptr;  // [3]: factors of pre, post, comb
  const float* base = nullptr;   // [24]
  FusedNorm norm;                // norm of layer_input
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
// Partials that a kernel stored, taken as exact numbers.
MhcPrePartials stored_partials(const MhcPre& inputs, const float* mixes, const float* square_sums);
MhcPreOutputs mhc_pre_outputs(const MhcPre& inputs, const MhcPrePartials& partials,
                              const Numerics& numerics);

}  // namespace plumb::reference
