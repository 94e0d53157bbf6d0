// SPDX-License-Identifier: Apache-2.0
//
// Cases of copy_ragged_to_graph_buffers. Capacity and live count are rows; dead rows are empty. The
// list behind its last entry holds what dead rows hold, and must not be copied.
#include "reference/metadata/copy_ragged_to_graph_buffers.h"

#include "cases/ops/metadata/integer_inputs.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

class CopyRaggedProblem : public Problem {
 public:
  explicit CopyRaggedProblem(const Row& row)
      : rows_(row.integer("rows")),
        max_per_row_(row.integer("max_per_row")),
        buffer_rows_(rows_ + row.integer("more_buffer_rows")) {}

  std::int64_t capacity() const override { return rows_; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add(column("indices", rows_ * max_per_row_));
    tensors.add(column("indptr", rows_ + 1));
    add_persistent(tensors, column("indices_buffer", buffer_rows_ * max_per_row_));
    add_persistent(tensors, column("indptr_buffer", buffer_rows_ + 1));
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    const auto indptr = reference::prefix_sums(live_lengths(step, rows_, step.live, max_per_row_));
    store_integers(indptr, tensors.at("indptr"));
    HostTensor& indices = tensors.at("indices");
    for (std::int64_t i = 0; i < indptr.back(); ++i) {
      const bool hole = step.fill == Fill::adversarial && i % 3 == 0;
      indices.data<std::int32_t>()[i] =
          hole ? -1 : static_cast<std::int32_t>(integer(mix(step.seed, 1), i, 0, 1 << 30));
    }
    fill_dead_integers(indices, indptr.back(), indices.rows(), step.dead_rows);
    fill_before(tensors.at("indices_buffer_before"), step.seed);
    fill_before(tensors.at("indptr_buffer_before"), step.seed);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_copy_ragged_to_graph_buffers_params params{};
    params.indices = tensors.get<std::int32_t>("indices");
    params.indptr = tensors.get<std::int32_t>("indptr");
    params.indices_buffer = tensors.get<std::int32_t>("indices_buffer");
    params.indptr_buffer = tensors.get<std::int32_t>("indptr_buffer");
    params.rows = rows_;
    params.max_per_row = max_per_row_;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors, const reference::Numerics&,
                                  const plumb_numerics&) const override {
    reference::GraphBuffers expected{integers_of(tensors.at("indices_buffer_before")),
                                     integers_of(tensors.at("indptr_buffer_before"))};
    copy_ragged_to_graph_buffers(tensors.at("indices").data<std::int32_t>(),
                                 tensors.at("indptr").data<std::int32_t>(), rows_, expected);
    return {judge_exact(tensors.at("indptr_buffer"), expected.indptr, {}),
            judge_ragged(tensors.at("indices_buffer"), expected.indices,
                         integers_of(tensors.at("indptr")), "rows")};
  }

  double cost() const override { return row_blocks_cost(rows_, max_per_row_); }

 private:
  std::int64_t rows_, max_per_row_, buffer_rows_;
};

}  // namespace

OpDefinition define_copy_ragged_to_graph_buffers() {
  OpDefinition op;
  op.name = "copy_ragged_to_graph_buffers";
  op.summary = "a ragged list into buffers that keep their addresses from step to step";
  op.parameters = {
      {"rows", 5, 0, 65536, "padded rows of the step"},
      {"max_per_row", 128, 0, 65536, "most entries of a row"},
      {"more_buffer_rows", 2, 0, 65536, "rows of the buffers beyond those of the step"}};
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<CopyRaggedProblem>(row);
  };
  return op;
}

}  // namespace plumb::cases
