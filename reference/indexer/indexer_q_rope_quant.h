// SPDX-License-Identifier: Apache-2.0
//
// indexer_q_rope_quant (operations' specification, 5.1): rotary embedding of the indexer's queries,
// rounded to bf16 and quantised head by head. The scale is multiplied into the head's weight.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/bound.h"
#include "reference/codes.h"
#include "reference/formats/e4m3.h"

namespace plumb::reference {

struct IndexerQRopeQuant {
  const std::uint16_t* q = nullptr;         // bf16 [tokens, heads, dim]
  std::int64_t q_token_stride = 0;          // elements
  const std::int64_t* positions = nullptr;  // [tokens]
  const float* cos_sin = nullptr;           // [positions, rope_dim]: cosines, then sines
  const std::uint16_t* weights = nullptr;   // bf16 [tokens, heads]
  std::int64_t tokens = 0, heads = 0, dim = 0, rope_dim = 0, rope_offset = 0;
  bool halves = false;  // pairs are (i, i + rope_dim / 2), else (2 i, 2 i + 1)
  double softmax_scale = 1, head_scale = 1;
  double amax_floor = 1e-4F;   // lower limit of the amax of a head
  bool pow2_scale = true;      // the scale is rounded up to a power of two
  bool rounds_to_bf16 = true;  // rotated and transformed values, before the amax
  bool hadamard = false;       // Hadamard transform of the rotated values
  Dialect dialect = Dialect::e4m3fn;
};

// [tokens * heads, dim], rotated and transformed, before the last rounding to bf16.
Estimate rotated_queries(const IndexerQRopeQuant& inputs, const Numerics& numerics);

// Scale of a head from the exact values, and the least and largest scale that a correct kernel can
// store. They differ if the head's largest value is near a boundary between two scales.
struct HeadScale {
  double exact = 1, least = 1, largest = 1;
  double error = 0;  // relative error of each scale
};
std::vector<HeadScale> head_scales(const IndexerQRopeQuant& inputs, const Estimate& rotated);

// The scale that a kernel has used for each head, derived from the weight that it stored: the right
// scale nearest to the weight's. The exact scale if the weight is 0 and shows nothing.
struct UsedScale {
  double value = 1;
  double error = 0;  // relative
};
std::vector<UsedScale> scales_used(const IndexerQRopeQuant& inputs,
                                   const std::vector<HeadScale>& honest, const float* weights_out);

// [tokens * heads, dim] codes and fp32 [tokens, heads] weights under these scales.
CodeEstimate indexer_q_codes(const IndexerQRopeQuant& inputs, const Estimate& rotated,
                             const std::vector<UsedScale>& scales);
Estimate indexer_q_weights(const IndexerQRopeQuant& inputs, const std::vector<UsedScale>& scales);

}  // namespace plumb::reference
