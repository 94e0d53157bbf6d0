// SPDX-License-Identifier: Apache-2.0
//
// Inputs of the compressor: partial states for the windows of the tokens, block table, positions,
// slots, weights and angles.
//
//   exact        one position of each window has all the weight, kv are 1 and -1
//   real         scores and kv as projections have them; sizes differ much between requests
//   adversarial  scores of 1e4, equal scores, one far above the others, -inf at one position; kv
//                so small that eps counts, kv that cancel; windows that begin at the start of a
//                sequence, or before it
#pragma once

#include <plumb/ops/compressor.h>

#include <cstdint>
#include <vector>

#include "cases/ops/cache/block_numbering.h"
#include "cases/tables/problem.h"
#include "cases/tensors/tensor.h"
#include "reference/compressor/compress_norm_rope_insert.h"

namespace plumb::cases {

struct PartialStateShape {
  std::int64_t tokens = 0, queries = 1;  // queries: tokens of a request
  std::int64_t context = 1;              // positions of the longest sequence
  std::int64_t head_dim = 128, ratio = 4;
  bool overlap = true;
  std::int64_t rows = 4, row_stride_bytes = 0;  // positions of a block, bytes between them
  plumb_state_form form = PLUMB_STATE_BIASED;
  BlockNumbering blocks;
  int weight_exponent = 0, kv_exponent = 0;  // sizes of norm weights and of kv, powers of two

  std::int64_t requests() const { return (tokens + queries - 1) / queries; }
  std::int64_t window() const { return overlap ? 2 * ratio : ratio; }
  std::int64_t width() const { return overlap ? 2 * head_dim : head_dim; }
};

// Number of blocks for the windows of all requests, plus block 0, which no request has, and a spare
// one.
std::int64_t needed_state_blocks(const PartialStateShape& shape);

// Fills `states`, `block_table`, `token_to_req`, `positions`, `state_slot_mapping`, `ape`, `weight`
// and `cos_sin`. Bytes outside of the live tokens' windows are NaN.
void fill_partial_states(const PartialStateShape& shape, const Step& step, TensorSet& tensors);

// Inputs of the reference for the compressed states of the tokens `closing`, which complete groups.
reference::CompressedStates reference_states(const PartialStateShape& shape,
                                             const TensorSet& tensors,
                                             const std::vector<std::int64_t>& closing);

}  // namespace plumb::cases
