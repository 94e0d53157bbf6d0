// SPDX-License-Identifier: Apache-2.0
//
// Cases of compute_global_topk_indices_and_lens. Capacity and live count are tokens.
#include "reference/metadata/compute_global_topk_indices_and_lens.h"

#include <plumb/ops/metadata.h>

#include "cases/ops/metadata/topk_positions.h"

namespace plumb::cases {

namespace {

using P = plumb_compute_global_topk_indices_and_lens_params;

Formula members(TablePart<P>& t) {
  const Formula tokens = t.scalar("tokens", &P::tokens), topk = t.scalar("topk", &P::topk);
  t.given(parameter("queries"), 1);
  t.caller_scalar("requests", &P::requests, div_up(tokens, parameter("queries")));
  t.scalar("blocks_per_request", &P::blocks_per_request, parameter("blocks"));
  add_topk_positions(t, tokens, topk);
  t.output("global_indices", &P::global_indices, {tokens, topk}, "slots; -1 behind the last");
  t.strides({{"global_indices_row_stride", &P::global_indices_row_stride}});
  t.output("lens", &P::lens, {tokens, 1}, "slots of each token");
  return tokens;
}

class GlobalTopKDenseProblem final : public TableProblem<P> {
 public:
  GlobalTopKDenseProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform), shape_(row, true) {}

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_topk_positions(shape_, step, tensors);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics&) const override {
    const auto expected = compute_global_topk_indices_and_lens(shape_.reference(tensors));
    return {expect_exact(tensors.at("lens"), expected.lens, {}),
            expect_exact(tensors.at("global_indices"), expected.global_indices, {})};
  }

  // Two sums over the wave for each of its widths of columns.
  double cost() const override {
    const auto lanes = static_cast<double>(shape_.tokens * ((shape_.topk + 31) / 32 * 32));
    return lanes * 11 * kShuffleCost;
  }
  double checked_factor() const override { return 1.5; }

 private:
  TopKPositionsShape shape_;
};

}  // namespace

OpDefinition define_compute_global_topk_indices_and_lens() {
  OpDefinition op;
  op.name = "compute_global_topk_indices_and_lens";
  op.summary = "slots of the top-k positions of decode tokens, dense, bounds checked";
  op.parameters = topk_positions_parameters();
  op.parameters.push_back(kOutGap);
  op.make_problem = make_problem_of<GlobalTopKDenseProblem>;
  op.table = &table_of<members>();
  return op;
}

}  // namespace plumb::cases
