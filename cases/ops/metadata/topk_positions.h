// SPDX-License-Identifier: Apache-2.0
//
// Inputs of the two ops that turn top-k positions into slots: positions per token, which request a
// token belongs to, whether it is valid, and the block table.
#pragma once

#include "cases/ops/metadata/integer_inputs.h"
#include "cases/tables/problem.h"
#include "cases/tables/row.h"
#include "device/plumb_ops.h"
#include "reference/metadata/compute_global_topk_ragged_indices_and_indptr.h"

namespace plumb::cases {

struct TopKPositionsShape {
  // Reads tokens, topk, queries, row_gap, blocks, block_size, table_gap. `out_of_range`: under
  // adversarial fills, also positions and requests that the block table does not cover.
  TopKPositionsShape(const Row& row, bool out_of_range);

  std::int64_t tokens, topk, queries, row_gap;
  bool out_of_range;
  BlockTableShape blocks;

  std::int64_t topk_row_stride() const { return topk + row_gap; }
  void add(TensorSet& tensors) const;
  reference::TopKPositions reference(const TensorSet& tensors) const;
};

std::vector<Parameter> topk_positions_parameters();

// Live tokens of request t / queries. Where no op promises more, valid positions form a prefix;
// under adversarial fills there are holes between them.
void fill_topk_positions(const TopKPositionsShape& shape, const Step& step, TensorSet& tensors);

}  // namespace plumb::cases
