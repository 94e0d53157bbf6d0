// SPDX-License-Identifier: Apache-2.0
//
// Inputs of the two ops that turn top-k positions into slots: positions per token, which request a
// token belongs to, whether it is valid, and the block table.
#pragma once

#include "cases/ops/metadata/metadata_members.h"
#include "cases/tables/row.h"
#include "reference/metadata/compute_global_topk_ragged_indices_and_indptr.h"

namespace plumb::cases {

struct TopKPositionsShape {
  // Reads tokens, topk, queries, row_gap, blocks, block_size, table_gap. `out_of_range`: under
  // adversarial fills, also positions and requests that the block table does not cover.
  TopKPositionsShape(const Row& row, bool out_of_range);

  std::int64_t tokens, topk, queries, row_gap;
  bool out_of_range;
  BlockTableShape blocks;

  reference::TopKPositions reference(const TensorSet& tensors) const;
};

// Members of both ops. For a recorded call, `blocks` or `table_gap` has to be given before.
template <class P>
void add_topk_positions(TablePart<P>& t, const Formula& tokens, const Formula& topk) {
  t.scalar("block_size", &P::block_size);
  const Formula stride =
      t.scalar("topk_indices_row_stride", &P::topk_indices_row_stride, topk + parameter("row_gap"));
  t.input("topk_indices", &P::topk_indices, {tokens, topk}, "positions; negative: none")
      .strides({stride, 1});
  t.input("token_to_req", &P::token_to_req, {tokens, 1}, "request of each token");
  t.input("is_valid_token", &P::is_valid_token, {tokens, 1}, "0: the token gets no slots");
  add_block_table(t, requests_of_tokens(tokens, div_up(tokens, parameter("queries"))),
                  parameter("blocks"));
}

std::vector<Parameter> topk_positions_parameters();

// Fills the inputs of both ops. Live token t belongs to request t / queries. Its valid positions
// form a prefix of its row. Adversarial fills have holes (-1) in this prefix.
void fill_topk_positions(const TopKPositionsShape& shape, const Step& step, TensorSet& tensors);

}  // namespace plumb::cases
