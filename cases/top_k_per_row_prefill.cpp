// SPDX-License-Identifier: Apache-2.0
//
// Cases of top_k_per_row_prefill: rows of one or more requests in one ragged call. The windows of
// the requests lie side by side in the columns of logits; a row's own window is its request's, cut
// as causal attention cuts it. Which request owns which window, and which row has which length,
// changes with the seed, so that a replay cannot live on old row_starts and row_ends.
#include "reference/top_k_per_row_prefill.h"

#include <algorithm>

#include "cases/fill.h"
#include "cases/top_k.h"
#include "cases/top_k_fill.h"

namespace plumb::cases {

namespace {

struct Range {
  std::int32_t start = 0, end = 0;
};

class TopKPerRowPrefillProblem : public Problem {
 public:
  explicit TopKPerRowPrefillProblem(const Row& row)
      : k_(static_cast<std::int32_t>(row.integer("k"))),
        requests_(row.integer("requests")),
        length_(row.integer("length")),
        length_step_(row.integer("length_step")),
        request_step_(row.integer("request_step")),
        lead_(row.integer("lead")),
        gap_(row.integer("gap")),
        pattern_(pattern_named(row)) {
    layout_.rows = row.integer("rows");
    layout_.columns = lead_ + requests_ * (length_ + gap_);
    layout_.column_stride = row.integer("column_stride");
    layout_.row_gap = row.integer("row_gap");
    check_trivial(row, length_, k_);
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
    for (std::int64_t row = 0; row < layout_.rows; ++row) {
      const Range range = row < step.live ? live_range(step, row) : dead_range();
      starts[row] = range.start;
      ends[row] = range.end;
      if (row >= step.live) continue;
      fill_logits(logits, layout_, row, range.start, range.end,
                  {step.seed, step.fill, pattern_, k_});
    }
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
                                  const plumb_numerics&) const override {
    reference::TopKPerRowPrefill input;
    input.logits = tensors.at("logits").data<float>();
    input.row_starts = tensors.at("row_starts").data<std::int32_t>();
    input.row_ends = tensors.at("row_ends").data<std::int32_t>();
    input.num_rows = layout_.rows;
    input.columns = layout_.columns;
    input.logits_row_stride = layout_.row_stride();
    input.logits_column_stride = layout_.column_stride;
    input.k = k_;
    Selection selection{windows_of(input), {}, layout_.columns, k_};
    selection.starts.assign(input.row_starts, input.row_starts + layout_.rows);
    return {judge_selection(tensors.at("indices"), selection)};
  }

  double cost() const override {
    const Step full{.live = layout_.rows};
    double work = 0;
    for (std::int64_t row = 0; row < layout_.rows; ++row) {
      const Range range = live_range(full, row);
      work += top_k_row_cost(layout_.columns, range.end - range.start, k_);
    }
    return work;
  }
  double checked_factor() const override { return kTopKCheckedFactor; }

 private:
  // Rows of a request are consecutive and, but for where they begin, causal: each sees length_step
  // columns more than the one in front of it. A row may come out with its end in front of its
  // start.
  Range live_range(const Step& step, std::int64_t row) const {
    const std::int64_t request = row * requests_ / step.live;
    const std::int64_t first = (request * step.live + requests_ - 1) / requests_;
    const std::int64_t behind = ((request + 1) * step.live + requests_ - 1) / requests_;
    const std::int64_t rows = behind - first;
    const std::int64_t turn = integer(mix(step.seed, 1), request, 0, rows - 1);
    const std::int64_t shorter = rows - 1 - (row - first + turn) % rows;
    const std::int64_t slot =
        (request + integer(mix(step.seed, 2), 0, 0, requests_ - 1)) % requests_;

    const std::int64_t start = lead_ + slot * (length_ + gap_);
    const std::int64_t length = length_ - slot * request_step_ - shorter * length_step_;
    return {static_cast<std::int32_t>(start), static_cast<std::int32_t>(start + length)};
  }

  Range dead_range() const {
    const auto behind_all = static_cast<std::int32_t>(layout_.columns);
    return {behind_all, behind_all};
  }

  std::int32_t k_;
  std::int64_t requests_, length_, length_step_, request_step_, lead_, gap_;
  LogitsLayout layout_;
  std::optional<LogitPattern> pattern_;
};

}  // namespace

OpDefinition define_top_k_per_row_prefill() {
  OpDefinition op;
  op.name = "top_k_per_row_prefill";
  op.summary = "row-local indices of the k largest logits of each row's window of columns";
  op.parameters = {
      {"k", 512, 1, 65536, "indices per row"},
      {"rows", 4, 1, 65536, "query rows, dealt out to the requests"},
      {"requests", 1, 1, 1024, "requests in one call, each with its own window of columns"},
      {"length", 2048, 0, 1 << 24, "longest window, in columns"},
      {"length_step", 0, 0, 65536, "how much shorter each earlier row of a request is"},
      {"request_step", 0, 0, 1 << 24, "how much shorter each further request's window is"},
      {"lead", 0, 0, 1 << 24, "garbage columns in front of the first window"},
      {"gap", 0, 0, 1 << 24, "garbage columns behind every window"},
      {"row_gap", 0, 0, 1 << 24, "elements between two rows of logits"},
      {"column_stride", 1, 1, 64, "elements from one column to the next"}};
  op.word_parameters = {"pattern"};
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<TopKPerRowPrefillProblem>(row);
  };
  return op;
}

}  // namespace plumb::cases
