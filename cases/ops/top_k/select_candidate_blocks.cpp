// SPDX-License-Identifier: Apache-2.0
//
// Cases of select_candidate_blocks. The batch has live and padded windows.
#include "reference/top_k/select_candidate_blocks.h"

#include <plumb/ops/top_k.h>

#include "cases/ops/top_k/candidate_rows.h"
#include "cases/ops/top_k/candidate_verdict.h"

namespace plumb::cases {

namespace select_candidate_blocks_cases {

using P = plumb_select_candidate_blocks_params;

// The values of all choices stand in the order of their enums.
const ContractChoice kNanBlock{
    "nan_block",
    {"dropped", "top", "forced", "ignored", "unspecified"},
    "a block with NaN: above +inf and then -1, above +inf, equal to +inf, as its other logits, or "
    "the row is free",
    {{"*", "unspecified", "a row with a NaN is free"},
     {"top", "forced", "blocks with NaN are among the best, and any of these may be taken"},
     {"unspecified", "top", "plumb's kernel of unspecified takes blocks with NaN first"},
     {"unspecified", "forced", "plumb's kernel of unspecified takes blocks with NaN first"}}};
const ContractChoice kDeadBlock{
    "dead_block", {"minus_one", "index"}, "a block whose logits are all -inf: -1, or its index"};
const ContractChoice kNewest{
    "newest",
    {"in_columns", "in_grid"},
    "a newest block behind the columns: no candidate, or one if its index is below "
    "ceil(columns / block_size)"};

Formula members(TablePart<P>& t) {
  const CandidateMembers sizes = add_candidate_rows(t);
  t.choice("nan_block", &P::nan_block, kNanBlock);
  t.choice("dead_block", &P::dead_block, kDeadBlock);
  t.choice("newest", &P::newest, kNewest);
  t.input("logits", &P::logits, {sizes.rows, sizes.columns}, "rows to select from")
      .elements(sizes.dtype)
      .strides({sizes.stride, 1});
  add_candidate_windows(t);
  t.output("blocks", &P::blocks, {sizes.rows, sizes.topk_blocks}, "blocks of the window; -1: none");
  t.strides({{"blocks_row_stride", &P::blocks_row_stride}});
  return parameter("windows");
}

class SelectCandidatesProblem final : public TableProblem<P> {
 public:
  SelectCandidatesProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), rows_(row, p_) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    rows_.fill(step, "logits", tensors);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    return {expect_candidates(tensors.at("blocks"), reference_input(tensors))};
  }

  std::optional<HostTensor> canonical(const TensorSet& tensors, const TensorSpec& spec,
                                      const plumb_numerics& declared) const override {
    if (spec.name != "blocks") return std::nullopt;
    return canonical_candidates(tensors.at("blocks"), reference_input(tensors), declared);
  }

  double cost() const override {
    // The select has at most three passes, and often ends earlier: all blocks of a part are best.
    constexpr double kThreads = 256, kPasses = 1.5, kBins = 2048, kVisits = 3;
    constexpr double kWaits = 3 * kBarrierCost + 5 * kShuffleCost;
    const auto columns = static_cast<double>(p_.columns);
    const double searching = kPasses * (kThreads * kWaits + kBins * kVisits);
    const double tiles = columns / static_cast<double>(p_.block_size) / kThreads + 1;
    return static_cast<double>(p_.rows) *
           (searching + tiles * kThreads * kWaits + (kPasses + 1) * 4 * columns);
  }
  double reference_cost() const override { return 4 * static_cast<double>(p_.rows * p_.columns); }
  double checked_factor() const override { return 4; }

 private:
  reference::CandidateSelection reference_input(const TensorSet& tensors) const {
    return {.rows = rows_.reference(tensors, "logits"),
            .topk_blocks = p_.topk_blocks,
            .nan_block = static_cast<reference::NanBlock>(p_.nan_block),
            .dead_blocks_have_indices = p_.dead_block == PLUMB_DEAD_BLOCK_INDEX,
            .newest_in_grid = p_.newest == PLUMB_NEWEST_IN_GRID};
  }

  CandidateRows rows_;
};

}  // namespace select_candidate_blocks_cases

OpDefinition define_select_candidate_blocks() {
  using namespace select_candidate_blocks_cases;
  return {{"select_candidate_blocks",
           "V4.1's first level of top-k: the blocks of columns with the largest logits",
           candidate_parameters(),
           {pattern_word()},
           {kNanBlock, kDeadBlock, kNewest}},
          make_problem_of<SelectCandidatesProblem>,
          {},
          "",
          &table_of<members>()};
}

}  // namespace plumb::cases
