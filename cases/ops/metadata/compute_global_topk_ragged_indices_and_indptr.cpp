// SPDX-License-Identifier: Apache-2.0
//
// Cases of compute_global_topk_ragged_indices_and_indptr. Capacity and live count are tokens.
#include "reference/metadata/compute_global_topk_ragged_indices_and_indptr.h"

#include "cases/ops/metadata/topk_positions.h"

namespace plumb::cases {

namespace {

class GlobalTopKRaggedProblem : public Problem {
 public:
  explicit GlobalTopKRaggedProblem(const Row& row) : shape_(row, false) {}

  std::int64_t capacity() const override { return shape_.tokens; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    shape_.add(tensors);
    add_persistent(tensors, column("flat", shape_.tokens * shape_.topk));
    tensors.add(as_output(column("indptr", shape_.tokens + 1)));
    tensors.add(as_output(column("lens", shape_.tokens)));
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    fill_topk_positions(shape_, step, tensors);
    fill_before(tensors.at("flat_before"), step.seed);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_compute_global_topk_ragged_indices_and_indptr_params params{};
    params.topk_indices = tensors.get<std::int32_t>("topk_indices");
    params.token_to_req = tensors.get<std::int32_t>("token_to_req");
    params.block_table = tensors.get<std::int32_t>("block_table");
    params.is_valid_token = tensors.get<std::uint8_t>("is_valid_token");
    params.flat = tensors.get<std::int32_t>("flat");
    params.indptr = tensors.get<std::int32_t>("indptr");
    params.lens = tensors.get<std::int32_t>("lens");
    params.tokens = shape_.tokens;
    params.topk = shape_.topk;
    params.topk_row_stride = shape_.topk_row_stride();
    params.block_table_row_stride = shape_.blocks.row_stride();
    params.block_size = shape_.blocks.block_size;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors, const reference::Numerics&,
                                  const plumb_numerics&) const override {
    const auto expected = compute_global_topk_ragged_indices_and_indptr(shape_.reference(tensors));
    return {judge_exact(tensors.at("lens"), expected.lens, {}),
            judge_exact(tensors.at("indptr"), expected.indptr, {}),
            judge_ragged(tensors.at("flat"), front_over(expected.flat, tensors.at("flat_before")),
                         expected.indptr, "tokens")};
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

}  // namespace

OpDefinition define_compute_global_topk_ragged_indices_and_indptr() {
  OpDefinition op;
  op.name = "compute_global_topk_ragged_indices_and_indptr";
  op.summary = "slots of the top-k positions of decode tokens, ragged";
  op.parameters = topk_positions_parameters();
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<GlobalTopKRaggedProblem>(row);
  };
  return op;
}

}  // namespace plumb::cases
