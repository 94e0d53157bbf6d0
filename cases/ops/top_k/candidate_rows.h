// SPDX-License-Identifier: Apache-2.0
//
// Members and inputs that both ops of the two-level top-k share: logits, the windows of their rows,
// and the blocks of each window. The batch has live and padded windows. Padded ones are empty.
#pragma once

#include <plumb/ops/top_k.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "cases/ops/indexer/ragged_windows.h"
#include "cases/ops/top_k/top_k_fill.h"
#include "cases/tables/row.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/step.h"
#include "cases/tensors/tensor.h"
#include "reference/top_k/candidate_blocks.h"

namespace plumb::cases {

struct CandidateMembers {
  Formula rows, columns, topk_blocks;
  Formula dtype, stride;  // of the logits
};

// Adds all scalars but the choices. A recorded call does not say which request a window belongs
// to: all its columns are one window.
template <class P>
CandidateMembers add_candidate_rows(TablePart<P>& t) {
  t.given(parameter("requests"), 1);
  t.given(parameter("lead"), 0);
  t.given(parameter("gap"), 0);
  t.given(parameter("cut"), 0);
  const Formula row_repeat = t.scalar("row_repeat", &P::row_repeat);
  const Formula rows = t.scalar("rows", &P::rows, parameter("windows") * row_repeat);
  const Formula columns = t.scalar(
      "columns", &P::columns,
      parameter("lead") + parameter("requests") * (parameter("length") + parameter("gap")) -
          parameter("cut"));
  const Formula stride =
      t.scalar("logits_row_stride", &P::logits_row_stride, columns + parameter("row_gap"));
  const Formula bf16 = parameter("bf16");
  t.scalar("logits_format", &P::logits_format, bf16 * (PLUMB_BF16 - PLUMB_F32) + PLUMB_F32);
  const Formula topk_blocks = t.scalar("topk_blocks", &P::topk_blocks);
  t.scalar("block_size", &P::block_size);
  return {rows, columns, topk_blocks, dtype_if(bf16, Dtype::bf16, Dtype::f32), stride};
}

template <class P>
void add_candidate_windows(TablePart<P>& t) {
  const Formula windows = parameter("windows");
  t.input("row_starts", &P::row_starts, {windows, 1}, "first column of each window");
  t.input("row_ends", &P::row_ends, {windows, 1}, "column behind each window");
}

std::vector<Parameter> candidate_parameters();

struct CandidateShape {
  std::int64_t rows, columns, row_stride, row_repeat, topk_blocks, block_size;
  bool bf16;
};

// The inputs of a row.
class CandidateRows {
 public:
  template <class P>
  CandidateRows(const Row& row, const P& p)
      : CandidateRows(
            row, CandidateShape{p.rows, p.columns, p.logits_row_stride, p.row_repeat, p.topk_blocks,
                                p.block_size, p.logits_format == PLUMB_BF16}) {}
  // Throws BadRow if `cut` leaves no columns.
  CandidateRows(const Row& row, const CandidateShape& shape);

  // Fills the windows, and the logits in the tensor `name`.
  void fill(const Step& step, std::string_view name, TensorSet& tensors) const;
  reference::BlockedLogits reference(const TensorSet& tensors, std::string_view name) const;
  std::int64_t live_rows(const Step& step) const { return step.live * shape_.row_repeat; }

 private:
  void move_end(const Step& step, std::int64_t w, Window& window) const;

  CandidateShape shape_;
  RaggedWindows windows_;
  bool ends_behind_ = false;  // windows may end behind the columns
  std::optional<LogitPattern> pattern_;
};

}  // namespace plumb::cases
