// SPDX-License-Identifier: Apache-2.0
//
// Cases of compute_global_topk_ragged_indices_and_indptr. The batch has live and padded tokens.
#include "reference/metadata/compute_global_topk_ragged_indices_and_indptr.h"

#include <plumb/ops/metadata.h>

#include "cases/ops/metadata/topk_positions.h"

namespace plumb::cases {

namespace compute_global_topk_ragged_indices_and_indptr_cases {

using P = plumb_compute_global_topk_ragged_indices_and_indptr_params;

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), topk = t.scalar("topk", &P::topk);
  t.given(parameter("table_gap"), 0);
  add_topk_positions(t, tokens, topk);
  t.in_place("flat", &P::flat, {tokens * topk, 1}, "slots of all tokens");
  t.output("indptr", &P::indptr, {tokens + 1, 1}, "first entry of each token");
  t.output("lens", &P::lens, {tokens, 1}, "slots of each token");
  return tokens;
}

class GlobalTopKRaggedProblem final : public TableProblem<P> {
 public:
  GlobalTopKRaggedProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), shape_(row, false) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_topk_positions(shape_, step, tensors);
    fill_before(tensors.at("flat_before"), step.seed);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const auto expected = compute_global_topk_ragged_indices_and_indptr(shape_.reference(tensors));
    return {expect_exact(tensors.at("lens"), expected.lens, {}),
            expect_exact(tensors.at("indptr"), expected.indptr, {}),
            expect_ragged(tensors.at("flat"), front_over(expected.flat, tensors.at("flat_before")),
                          expected.indptr, "token")};
  }

  double cost() const override {
    const double counting = 32 * (5 * kShuffleCost) + 2 * static_cast<double>(shape_.topk);
    return static_cast<double>(shape_.tokens) * counting + indptr_cost(shape_.tokens) +
           row_blocks_cost(shape_.tokens, shape_.topk);
  }
  double checked_factor() const override { return 4; }

 private:
  TopKPositionsShape shape_;
};

}  // namespace compute_global_topk_ragged_indices_and_indptr_cases

OpDefinition define_compute_global_topk_ragged_indices_and_indptr() {
  using namespace compute_global_topk_ragged_indices_and_indptr_cases;
  OpDefinition op;
  op.name = "compute_global_topk_ragged_indices_and_indptr";
  op.summary = "slots of the top-k positions of decode tokens, ragged";
  op.parameters = topk_positions_parameters();
  op.make_problem = make_problem_of<GlobalTopKRaggedProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
