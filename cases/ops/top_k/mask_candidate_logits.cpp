// SPDX-License-Identifier: Apache-2.0
//
// Cases of mask_candidate_logits. The batch has live and padded windows. Adversarial fills have
// candidates at the borders of the window and behind the columns.
#include "reference/top_k/mask_candidate_logits.h"

#include <plumb/ops/top_k.h>

#include <algorithm>
#include <numeric>

#include "cases/ops/metadata/integer_inputs.h"
#include "cases/ops/top_k/candidate_rows.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace mask_candidate_logits_cases {

using P = plumb_mask_candidate_logits_params;

enum MaskSalt : std::uint64_t { kCandidates = 31, kBorders };

const ContractChoice kEdge{"edge",
                           {"ignore", "keep_last"},
                           "a candidate at or behind the columns: nothing, or keeps the last "
                           "column if the window reaches it"};

Formula members(TablePart<P>& t) {
  const CandidateMembers sizes = add_candidate_rows(t);
  t.choice("edge", &P::edge, kEdge);
  t.in_place("logits", &P::logits, {sizes.rows, sizes.columns}, "-inf outside of candidates")
      .elements(sizes.dtype)
      .strides({sizes.stride, 1});
  add_candidate_windows(t);
  const Formula stride = t.scalar("blocks_row_stride", &P::blocks_row_stride,
                                  sizes.topk_blocks + parameter("blocks_gap"));
  t.input("blocks", &P::blocks, {sizes.rows, sizes.topk_blocks}, "blocks of the window; -1: none")
      .strides({stride, 1});
  return parameter("windows");
}

class MaskCandidatesProblem final : public TableProblem<P> {
 public:
  MaskCandidatesProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), rows_(row, p_) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    rows_.fill(step, "logits_before", tensors);
    const reference::BlockedLogits input = rows_.reference(tensors, "logits_before");
    HostTensor& blocks = tensors.at("blocks");
    for (std::int64_t row = 0; row < rows_.live_rows(step); ++row) {
      fill_candidates(step, row, input.window(row), blocks.row<std::int32_t>(row));
    }
    fill_dead_integers(blocks, rows_.live_rows(step), p_.rows, step.dead_rows);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const reference::CandidateMask input{
        .rows = rows_.reference(tensors, "logits_before"),
        .blocks = tensors.at("blocks").data<std::int32_t>(),
        .topk_blocks = p_.topk_blocks,
        .blocks_row_stride = tensors.at("blocks").spec().strides.front(),
        .keep_last = p_.edge == PLUMB_EDGE_KEEP_LAST};
    const TensorSpec& spec = tensors.at("logits").spec();
    HostTensor masked = tensors.at("logits_before");
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      const std::vector<bool> kept = kept_columns(input, row);
      for (std::int64_t column = 0; column < p_.columns; ++column) {
        if (kept[column]) continue;
        if (spec.dtype == Dtype::bf16) masked.row<std::uint16_t>(row)[column] = 0xff80;
        if (spec.dtype == Dtype::f32) masked.row<std::uint32_t>(row)[column] = 0xff800000U;
      }
    }
    return {expect_bits(tensors.at("logits"), std::move(masked), {}, "differs from the reference")};
  }

  double cost() const override {
    constexpr double kThreads = 256, kMarks = 2048;
    const auto columns = static_cast<double>(p_.columns);
    const double tiles = columns / static_cast<double>(p_.block_size) / kMarks + 1;
    const double marking = kMarks + static_cast<double>(p_.topk_blocks) * 2;
    return static_cast<double>(p_.rows) *
           (columns * 4 + tiles * (marking + kThreads * 3 * kBarrierCost));
  }
  double checked_factor() const override { return 4; }

 private:
  // Different blocks of the window in any order. -1 replaces an eighth of them, or, in adversarial
  // fills, a border replaces a fourth.
  void fill_candidates(const Step& step, std::int64_t row, const reference::BlockedWindow& window,
                       std::int32_t* to) const {
    const std::uint64_t seed = mix(mix(step.seed, kCandidates), static_cast<std::uint64_t>(row));
    const std::int64_t count = std::max<std::int64_t>(window.blocks, 1);
    auto multiplier = 1 + static_cast<std::int64_t>(seed % static_cast<std::uint64_t>(count));
    while (std::gcd(multiplier, count) != 1) ++multiplier;
    for (std::int64_t j = 0; j < p_.topk_blocks; ++j) {
      std::int64_t block = -1;
      if (j < window.blocks) {
        block = step.fill == Fill::exact ? count - 1 - j : (j * multiplier + count / 2) % count;
      }
      const std::uint64_t bits = random_bits(mix(seed, kBorders), static_cast<std::uint64_t>(j));
      if (step.fill == Fill::real && bits % 8 == 0) block = -1;
      if (step.fill == Fill::adversarial && bits % 4 == 0) {
        const std::int64_t borders[] = {-1, 0, window.newest, window.blocks, window.grid};
        block = borders[bits / 4 % std::size(borders)];
      }
      to[j] = static_cast<std::int32_t>(block);
    }
  }

  CandidateRows rows_;
};

}  // namespace mask_candidate_logits_cases

OpDefinition define_mask_candidate_logits() {
  using namespace mask_candidate_logits_cases;
  std::vector<Parameter> parameters = candidate_parameters();
  parameters.pop_back();  // out_gap: logits have row_gap
  parameters.push_back({"blocks_gap", 0, 0, 1 << 20, "elements between the blocks of two rows"});
  return {{"mask_candidate_logits",
           "V4.1's second level of top-k: -inf in all columns outside of candidate blocks",
           std::move(parameters),
           {pattern_word()},
           {kEdge}},
          make_problem_of<MaskCandidatesProblem>,
          {},
          "",
          &table_of<members>()};
}

}  // namespace plumb::cases
