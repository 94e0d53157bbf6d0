// SPDX-License-Identifier: Apache-2.0
//
// Cases of top_k_per_row_decode: next_n rows per request, ends from sequence lengths. Capacity and
// live count are requests. Which request has which length changes with the seed, so that a replay
// cannot live on old lengths.
#include "reference/top_k_per_row_decode.h"

#include <algorithm>

#include "cases/fill.h"
#include "cases/top_k.h"
#include "cases/top_k_fill.h"

namespace plumb::cases {

namespace {

class TopKPerRowDecodeProblem : public Problem {
 public:
  explicit TopKPerRowDecodeProblem(const Row& row)
      : k_(static_cast<std::int32_t>(row.integer("k"))),
        next_n_(static_cast<std::int32_t>(row.integer("next_n"))),
        dims_(static_cast<std::int32_t>(row.integer("seq_lens_dims"))),
        requests_(row.integer("requests")),
        length_(row.integer("length")),
        length_step_(row.integer("length_step")),
        lengths_gap_(row.integer("seq_lens_gap")),
        pattern_(pattern_named(row)) {
    layout_.rows = requests_ * next_n_;
    layout_.columns = length_ + row.integer("gap");
    layout_.column_stride = row.integer("column_stride");
    layout_.row_gap = row.integer("row_gap");
    check_trivial(row, length_, k_);
  }

  std::int64_t capacity() const override { return requests_; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add(layout_.spec());
    TensorSpec lengths{"seq_lens", Dtype::i32,  {requests_, lengths_per_request()},
                       {},         Role::input, false};
    lengths.strides = {lengths_stride(), 1};
    tensors.add(lengths);
    tensors.add({"indices", Dtype::i32, {layout_.rows, k_}, {}, Role::output, false});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    HostTensor& lengths = tensors.at("seq_lens");
    for (std::int64_t request = 0; request < requests_; ++request) {
      const std::int64_t seq_len = request < step.live ? live_length(step, request) : 0;
      for (std::int64_t query = 0; query < lengths_per_request(); ++query) {
        lengths.row<std::int32_t>(request)[query] = stored_length(seq_len, query);
      }
    }
    const reference::TopKPerRowDecode input = reference_input(tensors);
    const std::int64_t live_rows = step.live * next_n_;
    for (std::int64_t row = 0; row < live_rows; ++row) {
      fill_logits(tensors.at("logits"), layout_, row, 0, row_end(input, row),
                  {step.seed, step.fill, pattern_, k_});
    }
    fill_dead_logits(tensors.at("logits"), layout_, step, live_rows);
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_top_k_per_row_decode_params params{};
    params.logits = tensors.get<float>("logits");
    params.seq_lens = tensors.get<std::int32_t>("seq_lens");
    params.indices = tensors.get<std::int32_t>("indices");
    params.num_rows = layout_.rows;
    params.columns = layout_.columns;
    params.logits_row_stride = layout_.row_stride();
    params.logits_column_stride = layout_.column_stride;
    params.seq_lens_row_stride = lengths_stride();
    params.seq_lens_dims = dims_;
    params.next_n = next_n_;
    params.k = k_;
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step&, const TensorSet& tensors, const reference::Numerics&,
                                  const plumb_numerics&) const override {
    Selection selection{windows_of(reference_input(tensors)), {}, layout_.columns, k_};
    selection.starts.assign(selection.windows.size(), 0);
    return {judge_selection(tensors.at("indices"), selection)};
  }

  double cost() const override {
    double work = 0;
    for (std::int64_t request = 0; request < requests_; ++request) {
      work += next_n_ * top_k_row_cost(layout_.columns, length_ - length_step_ * request, k_);
    }
    return work;
  }
  double checked_factor() const override { return kTopKCheckedFactor; }

 private:
  std::int64_t lengths_per_request() const { return dims_ == 2 ? next_n_ : 1; }
  std::int64_t lengths_stride() const { return lengths_per_request() + lengths_gap_; }

  std::int64_t live_length(const Step& step, std::int64_t request) const {
    const std::int64_t turn = integer(mix(step.seed, 1), 0, 0, step.live - 1);
    return std::max<std::int64_t>(0, length_ - length_step_ * ((request + turn) % step.live));
  }

  // Two columns less for each earlier query of a 2-D row, where the 1-D formula would take one, and
  // so below 0 for a short sequence.
  std::int32_t stored_length(std::int64_t seq_len, std::int64_t query) const {
    const std::int64_t less = dims_ == 2 && seq_len > 0 ? 2 * (next_n_ - 1 - query) : 0;
    return static_cast<std::int32_t>(seq_len - less);
  }

  reference::TopKPerRowDecode reference_input(const TensorSet& tensors) const {
    reference::TopKPerRowDecode input;
    input.logits = tensors.at("logits").data<float>();
    input.seq_lens = tensors.at("seq_lens").data<std::int32_t>();
    input.num_rows = layout_.rows;
    input.columns = layout_.columns;
    input.logits_row_stride = layout_.row_stride();
    input.logits_column_stride = layout_.column_stride;
    input.seq_lens_row_stride = lengths_stride();
    input.seq_lens_dims = dims_;
    input.next_n = next_n_;
    input.k = k_;
    return input;
  }

  std::int32_t k_, next_n_, dims_;
  std::int64_t requests_, length_, length_step_, lengths_gap_;
  LogitsLayout layout_;
  std::optional<LogitPattern> pattern_;
};

}  // namespace

OpDefinition define_top_k_per_row_decode() {
  OpDefinition op;
  op.name = "top_k_per_row_decode";
  op.summary = "indices of the k largest logits of each row, ends from sequence lengths";
  op.parameters = {{"k", 512, 1, 65536, "indices per row"},
                   {"requests", 4, 1, 65536, "padded batch"},
                   {"next_n", 1, 1, 64, "rows per request"},
                   {"seq_lens_dims", 1, 1, 2, "1: one length per request; 2: one end per row"},
                   {"seq_lens_gap", 0, 0, 1024, "elements between the lengths of two requests"},
                   {"length", 2048, 0, 1 << 24, "longest sequence, in columns"},
                   {"length_step", 0, 0, 1 << 24, "how much shorter each further request is"},
                   {"gap", 0, 0, 1 << 24, "garbage columns behind the longest sequence"},
                   {"row_gap", 0, 0, 1 << 24, "elements between two rows of logits"},
                   {"column_stride", 1, 1, 64, "elements from one column to the next"}};
  op.word_parameters = {"pattern"};
  op.make_problem = [](const Row& row, const device::Properties&) -> std::unique_ptr<Problem> {
    return std::make_unique<TopKPerRowDecodeProblem>(row);
  };
  return op;
}

}  // namespace plumb::cases
