// SPDX-License-Identifier: Apache-2.0
//
// Cases of top_k_per_row_decode: next_n rows per request, ends from sequence lengths. Capacity and
// live count are requests.
#include "reference/top_k/top_k_per_row_decode.h"

#include "cases/ops/metadata/sequence_lengths.h"
#include "cases/ops/top_k/top_k.h"
#include "cases/ops/top_k/top_k_fill.h"
#include "cases/ops/top_k/top_k_order.h"

namespace plumb::cases {

namespace {

class TopKPerRowDecodeProblem : public Problem {
 public:
  explicit TopKPerRowDecodeProblem(const Row& row)
      : k_(static_cast<std::int32_t>(row.integer("k"))),
        lengths_(sequence_lengths(row, "seq_lens_dims", "seq_lens_gap")),
        pattern_(pattern_named(row)) {
    layout_.rows = lengths_.requests * lengths_.next_n;
    layout_.columns = lengths_.length + row.integer("gap");
    layout_.column_stride = row.integer("column_stride");
    layout_.row_gap = row.integer("row_gap");
    check_trivial(row, lengths_.length, k_);
  }

  std::int64_t capacity() const override { return lengths_.requests; }

  TensorSet make_tensors() const override {
    TensorSet tensors;
    tensors.add(layout_.spec());
    tensors.add(lengths_.spec("seq_lens"));
    tensors.add({"indices", Dtype::i32, {layout_.rows, k_}, {}, Role::output, false});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    lengths_.fill(step, tensors.at("seq_lens"));
    const reference::TopKPerRowDecode input = reference_input(tensors);
    const std::int64_t live_rows = step.live * lengths_.next_n;
    HostTensor& logits = tensors.at("logits");
    reference::parallel_for(live_rows, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        fill_logits(logits, layout_, row, 0, row_end(input, row),
                    {step.seed, step.fill, pattern_, k_});
      }
    });
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
    params.seq_lens_row_stride = lengths_.stride();
    params.seq_lens_dims = static_cast<std::int32_t>(lengths_.dims);
    params.next_n = static_cast<std::int32_t>(lengths_.next_n);
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
    double work = 0;
    for (std::int64_t request = 0; request < lengths_.requests; ++request) {
      const std::int64_t length = lengths_.length - lengths_.length_step * request;
      const auto rows = static_cast<double>(lengths_.next_n);
      work += rows * top_k_row_cost(layout_.columns, length, k_);
    }
    return work;
  }
  double reference_cost() const override {
    return kTopKReferenceCost * static_cast<double>(layout_.rows * layout_.columns);
  }
  double checked_factor() const override { return kTopKCheckedFactor; }

 private:
  reference::TopKPerRowDecode reference_input(const TensorSet& tensors) const {
    reference::TopKPerRowDecode input;
    input.logits = tensors.at("logits").data<float>();
    input.seq_lens = tensors.at("seq_lens").data<std::int32_t>();
    input.num_rows = layout_.rows;
    input.columns = layout_.columns;
    input.logits_row_stride = layout_.row_stride();
    input.logits_column_stride = layout_.column_stride;
    input.seq_lens_row_stride = lengths_.stride();
    input.seq_lens_dims = static_cast<std::int32_t>(lengths_.dims);
    input.next_n = static_cast<std::int32_t>(lengths_.next_n);
    input.k = k_;
    return input;
  }

  TopKWindows selection(const TensorSet& tensors) const {
    TopKWindows selection{windows_of(reference_input(tensors)), {}, layout_.columns, k_};
    selection.starts.assign(selection.windows.size(), 0);
    return selection;
  }

  std::int32_t k_;
  SequenceLengths lengths_;
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
  op.row_count = "requests";
  return op;
}

}  // namespace plumb::cases
