// SPDX-License-Identifier: Apache-2.0
//
// Cases of compute_global_topk_indices_and_lens. The batch has live and padded tokens.
#include "reference/metadata/compute_global_topk_indices_and_lens.h"

#include <plumb/ops/metadata.h>

#include "cases/ops/metadata/topk_positions.h"

namespace plumb::cases {

namespace compute_global_topk_indices_and_lens_cases {

using P = plumb_compute_global_topk_indices_and_lens_params;

const ContractChoice kCompaction{
    "compaction", {"none", "left"}, "slots stay in their columns, or move to the left"};
const ContractChoice kBounds{"bounds",
                             {"unchecked", "checked"},
                             "requests and positions outside the block table do not occur, or have "
                             "no slot",
                             {{"checked", "unchecked", "all are inside the block table"}}};

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), topk = t.scalar("topk", &P::topk);
  t.given(parameter("queries"), 1);
  t.caller_scalar("requests", &P::requests, div_up(tokens, parameter("queries")));
  t.scalar("blocks_per_request", &P::blocks_per_request, parameter("blocks"));
  t.choice("compaction", &P::compaction, kCompaction);
  t.choice("bounds", &P::bounds, kBounds);
  add_topk_positions(t, tokens, topk);
  t.output("global_indices", &P::global_indices, {tokens, topk}, "slots; -1 behind the last");
  t.strides({{"global_indices_row_stride", &P::global_indices_row_stride}});
  t.output("lens", &P::lens, {tokens, 1}, "slots of each token");
  return tokens;
}

class GlobalTopKDenseProblem final : public TableProblem<P> {
 public:
  GlobalTopKDenseProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        shape_(row, p_.bounds == PLUMB_BOUNDS_CHECKED) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_topk_positions(shape_, step, tensors);
    if (p_.bounds == PLUMB_BOUNDS_CHECKED) return;
    // Without bounds checks a kernel also looks up the positions of padded tokens, so that these
    // have to be -1 or inside the block table.
    const bool far = step.dead_rows == DeadRows::infinity || step.dead_rows == DeadRows::huge;
    fill_dead_integers(tensors.at("topk_indices"), step.live, p_.tokens,
                       far ? DeadRows::nan : step.dead_rows);
  }

  Expectations expect(const Step& step, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const bool to_left = p_.compaction == PLUMB_COMPACTION_LEFT;
    const auto expected = compute_global_topk_indices_and_lens(shape_.reference(tensors), to_left);
    const HostTensor& slots = tensors.at("global_indices");
    return {expect_exact(tensors.at("lens"), expected.lens, {}),
            expect_exact(slots, expected.global_indices,
                         promised_rows_by_inputs(step, tensors, slots.spec()))};
  }

  // An invalid token has length 0: its slots are never read and not promised. With compaction they
  // are -1 and promised.
  RowMask promised_rows(const Step& step, const TensorSpec& spec) const override {
    return promised(spec, [&](std::int64_t t) { return is_batch_token(step, t, step.live); });
  }
  RowMask promised_rows_by_inputs(const Step&, const TensorSet& tensors,
                                  const TensorSpec& spec) const override {
    const auto* valid = tensors.at("is_valid_token").data<std::uint8_t>();
    return promised(spec, [&](std::int64_t token) { return valid[token] != 0; });
  }

  // Two sums over a wave for every 32 columns.
  double cost() const override {
    const auto lanes = static_cast<double>(shape_.tokens * ((shape_.topk + 31) / 32 * 32));
    return lanes * 11 * kShuffleCost;
  }
  double checked_factor() const override { return 1.5; }

 private:
  template <class IsValid>
  RowMask promised(const TensorSpec& spec, const IsValid& is_valid) const {
    if (spec.name != "global_indices" || p_.compaction == PLUMB_COMPACTION_LEFT) return {};
    RowMask rows;
    for (std::int64_t token = 0; token < p_.tokens; ++token) rows.push_back(is_valid(token));
    return rows;
  }

  TopKPositionsShape shape_;
};

}  // namespace compute_global_topk_indices_and_lens_cases

OpDefinition define_compute_global_topk_indices_and_lens() {
  using namespace compute_global_topk_indices_and_lens_cases;
  OpDefinition op;
  op.name = "compute_global_topk_indices_and_lens";
  op.summary = "slots of the top-k positions of decode tokens, dense";
  op.parameters = topk_positions_parameters();
  op.parameters.push_back(kOutGap);
  op.choices = {kCompaction, kBounds};
  op.make_problem = make_problem_of<GlobalTopKDenseProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
