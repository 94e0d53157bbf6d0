// SPDX-License-Identifier: Apache-2.0
//
// Cases of compute_global_topk_indices_and_lens. Capacity and live count are tokens.
#include "reference/metadata/compute_global_topk_indices_and_lens.h"

#include "cases/ops/metadata/topk_positions.h"

namespace plumb::cases {

namespace {

class GlobalTopKDenseProblem : public Problem {
 public:
  explicit GlobalTopKDenseProblem(const Row& row) : shape_(row, true) {}

  std::int64_t capacity() const override { return shape_.tokens; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    shape_.add(tensors);
    tensors.add(as_output(table("global_indices", shape_.tokens, shape_.topk, 0)));
    tensors.add(as_output(column("lens", shape_.tokens)));
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_topk_positions(shape_, step, tensors);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_compute_global_topk_indices_and_lens_params params{};
    params.topk_indices = tensors.get<std::int32_t>("topk_indices");
    params.token_to_req = tensors.get<std::int32_t>("token_to_req");
    params.block_table = tensors.get<std::int32_t>("block_table");
    params.is_valid_token = tensors.get<std::uint8_t>("is_valid_token");
    params.global_indices = tensors.get<std::int32_t>("global_indices");
    params.lens = tensors.get<std::int32_t>("lens");
    params.tokens = shape_.tokens;
    params.topk = shape_.topk;
    params.requests = shape_.blocks.requests;
    params.blocks_per_request = shape_.blocks.columns;
    params.topk_row_stride = shape_.topk_row_stride();
    params.block_table_row_stride = shape_.blocks.row_stride();
    params.block_size = shape_.blocks.block_size;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors, const reference::Numerics&,
                                  const plumb_numerics&) const override {
    const auto expected = compute_global_topk_indices_and_lens(shape_.reference(tensors));
    return {judge_exact(tensors.at("lens"), expected.lens, {}),
            judge_exact(tensors.at("global_indices"), expected.global_indices, {})};
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
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<GlobalTopKDenseProblem>(row);
  };
  return op;
}

}  // namespace plumb::cases
