// SPDX-License-Identifier: Apache-2.0
//
// Cases of expand_candidate_blocks. The batch has live and padded rows. Real and adversarial fills
// have -1 at any place, and the adversarial one has blocks behind the window too.
#include "reference/top_k/expand_candidate_blocks.h"

#include <plumb/ops/top_k.h>

#include <algorithm>
#include <limits>

#include "cases/ops/metadata/integer_inputs.h"
#include "cases/ops/top_k/sparse_windows.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace expand_candidate_blocks_cases {

using P = plumb_expand_candidate_blocks_params;

enum ExpandSalt : std::uint64_t { kChosen = 41, kPlaces, kInvalid };

Formula members(TablePart<P>& t) {
  const Formula rows = t.scalar("rows", &P::rows);
  const Formula topk_blocks = t.scalar("topk_blocks", &P::topk_blocks);
  const Formula size = t.scalar("block_size", &P::block_size);
  const Formula sparse_size = t.scalar("sparse_block_size", &P::sparse_block_size);
  const Formula stride =
      t.scalar("blocks_row_stride", &P::blocks_row_stride, topk_blocks + parameter("blocks_gap"));
  t.input("blocks", &P::blocks, {rows, topk_blocks}, "blocks of the window; negative: none")
      .strides({stride, 1});
  t.input("row_starts", &P::row_starts, {rows, 1}, "first column of each window");
  t.input("row_ends", &P::row_ends, {rows, 1}, "column behind each window");
  t.output("sparse_blocks", &P::sparse_blocks, {rows, topk_blocks * size / sparse_size},
           "valid sparse blocks in ascending order, then the last one again");
  t.strides({{"sparse_blocks_row_stride", &P::sparse_blocks_row_stride}});
  t.output("sparse_ends", &P::sparse_ends, {rows, 1}, "valid columns of the sparse logits");
  return rows;
}

class ExpandCandidatesProblem final : public TableProblem<P> {
 public:
  ExpandCandidatesProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        windows_(row, p_.rows),
        found_(row.integer("found")),
        newest_(row.integer("newest")),
        repeats_(row.integer("repeats") != 0) {
    if (p_.block_size % p_.sparse_block_size != 0) {
      throw BadRow(row.where + ": sparse_block_size is a divisor of block_size");
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    HostTensor& blocks = tensors.at("blocks");
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      const Window window = windows_.of(step, row);
      tensors.at("row_starts").data<std::int32_t>()[row] = static_cast<std::int32_t>(window.start);
      tensors.at("row_ends").data<std::int32_t>()[row] = static_cast<std::int32_t>(window.end);
      if (row < step.live) fill_candidates(step, row, blocks.row<std::int32_t>(row));
    }
    fill_dead_integers(blocks, step.live, p_.rows, step.dead_rows);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    auto expected = reference::expand_candidate_blocks(
        {.blocks = tensors.at("blocks").data<std::int32_t>(),
         .row_starts = tensors.at("row_starts").data<std::int32_t>(),
         .row_ends = tensors.at("row_ends").data<std::int32_t>(),
         .rows = p_.rows,
         .topk_blocks = p_.topk_blocks,
         .blocks_row_stride = tensors.at("blocks").spec().strides.front(),
         .block_size = p_.block_size,
         .sparse_block_size = p_.sparse_block_size});
    return {expect_exact(tensors.at("sparse_blocks"), std::move(expected.blocks), {}),
            expect_exact(tensors.at("sparse_ends"), std::move(expected.ends), {})};
  }

  // Each candidate is compared with all others.
  double cost() const override {
    constexpr double kThreads = 256, kThread = 50, kStore = 3;
    const auto candidates = static_cast<double>(p_.topk_blocks);
    const auto pieces = static_cast<double>(p_.block_size / p_.sparse_block_size);
    return static_cast<double>(p_.rows) *
           (kThreads * (kThread + 2 * kBarrierCost) + candidates * (candidates + pieces * kStore));
  }
  double checked_factor() const override { return 4; }

 private:
  // Different valid blocks. The newest one stands first, if it is a candidate.
  std::vector<std::int64_t> chosen_blocks(const Step& step, std::int64_t row) const {
    const std::int64_t count = (windows_.length(step, row) + p_.block_size - 1) / p_.block_size;
    if (count == 0) return {};
    std::int64_t wanted = std::min(found_, p_.topk_blocks);
    if (step.fill == Fill::adversarial) wanted -= wanted / 4;
    const std::int64_t others = count - 1;
    const ShuffledNumbers order(row_seed(step, row, kChosen), others);
    std::vector<std::int64_t> blocks;
    if (newest_ != 0 && wanted > 0) blocks.push_back(count - 1);
    for (std::int64_t i = 0; i < others && std::ssize(blocks) < wanted; ++i) {
      blocks.push_back(step.fill == Fill::exact ? others - 1 - i : order[i]);
    }
    return blocks;
  }

  void fill_candidates(const Step& step, std::int64_t row, std::int32_t* to) const {
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    const std::vector<std::int64_t> chosen = chosen_blocks(step, row);
    const std::int64_t behind = (windows_.length(step, row) + p_.block_size - 1) / p_.block_size;
    const std::int64_t invalid[] = {-1, behind, kMost, -kMost - 1, behind + 1, -2};
    const ShuffledNumbers places(row_seed(step, row, kPlaces), p_.topk_blocks);
    for (std::int64_t j = 0; j < p_.topk_blocks; ++j) {
      const std::uint64_t bits = random_bits(row_seed(step, row, kInvalid), j);
      const auto known = static_cast<std::uint64_t>(chosen.size());
      std::int64_t block = -1;
      if (j < std::ssize(chosen)) {
        block = chosen[static_cast<std::size_t>(j)];
      } else if (repeats_ && known > 0) {
        block = chosen[bits % known];
      } else if (step.fill == Fill::adversarial) {
        block = std::min(invalid[bits % std::size(invalid)], kMost);
      }
      to[step.fill == Fill::exact ? j : places[j]] = static_cast<std::int32_t>(block);
    }
  }

  static std::uint64_t row_seed(const Step& step, std::int64_t row, std::uint64_t salt) {
    return mix(mix(step.seed, salt), static_cast<std::uint64_t>(row));
  }

  SparseWindows windows_;
  std::int64_t found_, newest_;
  bool repeats_;
};

}  // namespace expand_candidate_blocks_cases

OpDefinition define_expand_candidate_blocks() {
  using namespace expand_candidate_blocks_cases;
  OpDefinition op;
  op.name = "expand_candidate_blocks";
  op.summary = "V4.1: sparse blocks of the candidate blocks in ascending order, for sparse logits";
  op.parameters = sparse_window_parameters();
  op.parameters.insert(
      op.parameters.begin(),
      {{"rows", 4, 0, 65536, "padded rows"},
       {"topk_blocks", 16, 1, 65536, "candidate blocks per row"},
       {"block_size", 8, 1, 1024, "columns of a candidate block"},
       {"sparse_block_size", 8, 1, 1024, "columns of a sparse block, a divisor of block_size"},
       {"found", 65536, 0, 65536, "most valid candidates of a row"},
       {"newest", 1, 0, 1, "1: the newest block is a candidate, 0: it is none"},
       {"repeats", 0, 0, 1, "1: places without a valid candidate repeat one"},
       {"blocks_gap", 0, 0, 1 << 20, "elements between the candidates of two rows"},
       kOutGap});
  op.make_problem = make_problem_of<ExpandCandidatesProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
