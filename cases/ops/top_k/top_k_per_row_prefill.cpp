// SPDX-License-Identifier: Apache-2.0
//
// Cases of top_k_per_row_prefill: rows of one or more requests in one ragged call.
#include "reference/top_k/top_k_per_row_prefill.h"

#include "cases/ops/indexer/ragged_windows.h"
#include "cases/ops/top_k/top_k.h"
#include "cases/ops/top_k/top_k_fill.h"
#include "cases/ops/top_k/top_k_order.h"

namespace plumb::cases {

namespace {

class TopKPerRowPrefillProblem : public Problem {
 public:
  explicit TopKPerRowPrefillProblem(const Row& row)
      : k_(static_cast<std::int32_t>(row.integer("k"))),
        windows_(ragged_windows(row)),
        pattern_(pattern_named(row)) {
    layout_.rows = windows_.rows;
    layout_.columns = windows_.columns();
    layout_.column_stride = row.integer("column_stride");
    layout_.row_gap = row.integer("row_gap");
    check_trivial(row, windows_.length, k_);
  }

  std::int64_t capacity() const override { return layout_.rows; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add(layout_.spec());
    tensors.add({"row_starts", Dtype::i32, {layout_.rows}, {}, Role::input, false});
    tensors.add({"row_ends", Dtype::i32, {layout_.rows}, {}, Role::input, false});
    tensors.add({"indices", Dtype::i32, {layout_.rows, k_}, {}, Role::output, false});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    HostTensor& logits = tensors.at("logits");
    auto* starts = tensors.at("row_starts").data<std::int32_t>();
    auto* ends = tensors.at("row_ends").data<std::int32_t>();
    reference::parallel_for(layout_.rows, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const bool live = row < step.live;
        const Window window =
            live ? windows_.of(step, row) : Window{layout_.columns, layout_.columns};
        starts[row] = static_cast<std::int32_t>(window.start);
        ends[row] = static_cast<std::int32_t>(window.end);
        if (!live) continue;
        fill_logits(logits, layout_, row, window.start, window.end,
                    {step.seed, step.fill, pattern_, k_});
      }
    });
    fill_dead_logits(logits, layout_, step, step.live);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_top_k_per_row_prefill_params params{};
    params.logits = tensors.get<float>("logits");
    params.row_starts = tensors.get<std::int32_t>("row_starts");
    params.row_ends = tensors.get<std::int32_t>("row_ends");
    params.indices = tensors.get<std::int32_t>("indices");
    params.num_rows = layout_.rows;
    params.columns = layout_.columns;
    params.logits_row_stride = layout_.row_stride();
    params.logits_column_stride = layout_.column_stride;
    params.k = k_;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors, const reference::Numerics&,
                                  const plumb_numerics& declared) const override {
    return {judge_top_k(tensors.at("indices"), selection(tensors), declared)};
  }

  std::optional<HostTensor> canonical(const TensorSet& tensors, const TensorSpec& spec,
                                      const plumb_numerics& declared) const override {
    if (spec.name != "indices") return std::nullopt;
    return canonical_selection(tensors.at("indices"), selection(tensors), declared);
  }

  double cost() const override {
    const Step full{.live = layout_.rows};
    double work = 0;
    for (std::int64_t row = 0; row < layout_.rows; ++row) {
      const Window window = windows_.of(full, row);
      work += top_k_row_cost(layout_.columns, window.end - window.start, k_);
    }
    return work;
  }
  double reference_cost() const override {
    return kTopKReferenceCost * static_cast<double>(layout_.rows * layout_.columns);
  }
  double checked_factor() const override { return kTopKCheckedFactor; }

 private:
  TopKWindows selection(const TensorSet& tensors) const {
    reference::TopKPerRowPrefill input;
    input.logits = tensors.at("logits").data<float>();
    input.row_starts = tensors.at("row_starts").data<std::int32_t>();
    input.row_ends = tensors.at("row_ends").data<std::int32_t>();
    input.num_rows = layout_.rows;
    input.columns = layout_.columns;
    input.logits_row_stride = layout_.row_stride();
    input.logits_column_stride = layout_.column_stride;
    input.k = k_;
    TopKWindows selection{windows_of(input), {}, layout_.columns, k_};
    selection.starts.assign(input.row_starts, input.row_starts + layout_.rows);
    return selection;
  }

  std::int32_t k_;
  RaggedWindows windows_;
  LogitsLayout layout_;
  std::optional<LogitPattern> pattern_;
};

}  // namespace

OpDefinition define_top_k_per_row_prefill() {
  OpDefinition op;
  op.name = "top_k_per_row_prefill";
  op.summary = "row-local indices of the k largest logits of each row's window of columns";
  op.parameters = ragged_window_parameters();
  op.parameters.insert(op.parameters.end(),
                       {{"k", 512, 1, 65536, "indices per row"},
                        {"row_gap", 0, 0, 1 << 24, "elements between two rows of logits"},
                        {"column_stride", 1, 1, 64, "elements from one column to the next"}});
  op.word_parameters = {"pattern"};
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<TopKPerRowPrefillProblem>(row);
  };
  op.row_count = "rows";
  return op;
}

}  // namespace plumb::cases
