// SPDX-License-Identifier: Apache-2.0
//
// Cases of remap_candidate_positions. The batch has live and padded rows. The adversarial fill has
// columns at the borders of sparse blocks and outside of the sparse logits.
#include "reference/top_k/remap_candidate_positions.h"

#include <plumb/ops/top_k.h>

#include <algorithm>
#include <limits>

#include "cases/ops/metadata/integer_inputs.h"
#include "cases/ops/top_k/sparse_windows.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace remap_candidate_positions_cases {

using P = plumb_remap_candidate_positions_params;

enum RemapSalt : std::uint64_t { kBlocks = 51, kColumns, kPlaces, kBorders };

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

Formula members(TablePart<P>& t) {
  const Formula rows = t.scalar("rows", &P::rows), k = t.scalar("k", &P::k);
  const Formula row_blocks = t.scalar("row_blocks", &P::row_blocks);
  t.scalar("sparse_block_size", &P::sparse_block_size);
  const Formula stride =
      t.scalar("columns_row_stride", &P::columns_row_stride, k + parameter("columns_gap"));
  const Formula blocks_stride = t.scalar("sparse_blocks_row_stride", &P::sparse_blocks_row_stride,
                                         row_blocks + parameter("blocks_gap"));
  t.input("columns", &P::columns, {rows, k}, "columns of the sparse logits; negative: none")
      .strides({stride, 1});
  t.input("sparse_blocks", &P::sparse_blocks, {rows, row_blocks}, "blocks of the sparse logits")
      .strides({blocks_stride, 1});
  t.input("row_starts", &P::row_starts, {rows, 1}, "first column of each window");
  t.output("positions", &P::positions, {rows, k}, "positions in the window; -1: none");
  t.strides({{"positions_row_stride", &P::positions_row_stride}});
  return rows;
}

class RemapPositionsProblem final : public TableProblem<P> {
 public:
  RemapPositionsProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        windows_(row, p_.rows),
        found_(row.integer("found")) {
    if (p_.row_blocks * p_.sparse_block_size > kMost) {
      throw BadRow(row.where + ": columns of the sparse logits do not fit into int32");
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    HostTensor &columns = tensors.at("columns"), &blocks = tensors.at("sparse_blocks");
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      const std::int64_t start = windows_.of(step, row).start;
      tensors.at("row_starts").data<std::int32_t>()[row] = static_cast<std::int32_t>(start);
      if (row >= step.live) continue;
      const std::int64_t end = fill_blocks(step, row, start, blocks.row<std::int32_t>(row));
      fill_columns(step, row, end, columns.row<std::int32_t>(row));
    }
    fill_dead_integers(blocks, step.live, p_.rows, step.dead_rows);
    // A kernel looks up the columns of padded rows. They have to be -1 or legal.
    const bool foreign = step.dead_rows == DeadRows::foreign;
    fill_dead_integers(columns, step.live, p_.rows, foreign ? step.dead_rows : DeadRows::nan);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    return {expect_exact(
        tensors.at("positions"),
        reference::remap_candidate_positions(
            {.columns = tensors.at("columns").data<std::int32_t>(),
             .sparse_blocks = tensors.at("sparse_blocks").data<std::int32_t>(),
             .row_starts = tensors.at("row_starts").data<std::int32_t>(),
             .rows = p_.rows,
             .k = p_.k,
             .row_blocks = p_.row_blocks,
             .sparse_block_size = p_.sparse_block_size,
             .columns_row_stride = tensors.at("columns").spec().strides.front(),
             .sparse_blocks_row_stride = tensors.at("sparse_blocks").spec().strides.front()}),
        {})};
  }

  double cost() const override { return row_blocks_cost(p_.rows, p_.k); }

 private:
  // Sparse blocks as expand_candidate_blocks writes them: different blocks of the window with the
  // newest one, ascending, and the last one again. Returns the number of valid columns.
  std::int64_t fill_blocks(const Step& step, std::int64_t row, std::int64_t start,
                           std::int32_t* to) const {
    const std::int64_t size = p_.sparse_block_size, length = windows_.length(step, row);
    const std::int64_t count = (length + size - 1) / size;
    const std::int64_t wanted = std::min({found_, p_.row_blocks, count});
    const ShuffledNumbers order(row_seed(step, row, kBlocks), count - 1);
    std::vector<std::int64_t> blocks;
    for (std::int64_t i = 0; i + 1 < wanted; ++i) blocks.push_back(order[i]);
    std::sort(blocks.begin(), blocks.end());
    if (wanted > 0) blocks.push_back(count - 1);
    blocks.resize(static_cast<std::size_t>(p_.row_blocks), wanted > 0 ? count - 1 : 0);
    for (const std::int64_t block : blocks) *to++ = static_cast<std::int32_t>(start / size + block);
    return wanted > 0 ? (wanted - 1) * size + length - (count - 1) * size : 0;
  }

  // Columns that a top-k kernel has selected from [0, end). -1 stands in the other places.
  void fill_columns(const Step& step, std::int64_t row, std::int64_t end, std::int32_t* to) const {
    const std::int64_t size = p_.sparse_block_size, width = p_.row_blocks * size;
    // The large number is what DeepSelect may write in a row with NaN.
    const std::int64_t borders[] = {-1,    0,     end - 1,   size - 1,   size,      width - 1,
                                    width, kMost, width + 1, -kMost - 1, 0x3f3f3f3f};
    const ShuffledNumbers selected(row_seed(step, row, kColumns), end);
    const ShuffledNumbers places(row_seed(step, row, kPlaces), p_.k);
    for (std::int64_t j = 0; j < p_.k; ++j) {
      const std::uint64_t bits = random_bits(row_seed(step, row, kBorders), j);
      std::int64_t column = -1;
      if (j < end) column = step.fill == Fill::exact ? end - 1 - j : selected[j];
      if (step.fill == Fill::adversarial && bits % 3 == 0) {
        column = std::min(borders[bits / 3 % std::size(borders)], kMost);
      }
      to[step.fill == Fill::adversarial ? places[j] : j] = static_cast<std::int32_t>(column);
    }
  }

  static std::uint64_t row_seed(const Step& step, std::int64_t row, std::uint64_t salt) {
    return mix(mix(step.seed, salt), static_cast<std::uint64_t>(row));
  }

  SparseWindows windows_;
  std::int64_t found_;
};

}  // namespace remap_candidate_positions_cases

OpDefinition define_remap_candidate_positions() {
  using namespace remap_candidate_positions_cases;
  OpDefinition op;
  op.name = "remap_candidate_positions";
  op.summary = "V4.1: positions of the columns that top-k selected from sparse logits";
  op.parameters = sparse_window_parameters();
  op.parameters.insert(op.parameters.begin(),
                       {{"rows", 4, 0, 65536, "padded rows"},
                        {"k", 64, 1, 65536, "columns per row"},
                        {"row_blocks", 16, 1, 131072, "sparse blocks per row"},
                        {"sparse_block_size", 8, 1, 1024, "columns of a sparse block"},
                        {"found", 131072, 0, 131072, "most valid sparse blocks of a row"},
                        {"columns_gap", 0, 0, 1 << 20, "elements between the columns of two rows"},
                        {"blocks_gap", 0, 0, 1 << 20, "elements between the blocks of two rows"},
                        kOutGap});
  op.make_problem = make_problem_of<RemapPositionsProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
