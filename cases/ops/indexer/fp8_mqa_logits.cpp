// SPDX-License-Identifier: Apache-2.0
//
// Cases of fp8_mqa_logits: rows of one or more requests in one ragged prefill. Keys that no row
// sees are NaN, with scales that are NaN.
#include "reference/indexer/fp8_mqa_logits.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "cases/ops/indexer/indexer_inputs.h"
#include "cases/ops/indexer/ragged_windows.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

class Fp8MqaLogitsProblem final : public Problem {
 public:
  Fp8MqaLogitsProblem(const Row& row, const device::Properties& platform)
      : windows_(ragged_windows(row)),
        heads_(row.integer("heads")),
        dim_(row.integer("dim")),
        keys_(windows_.columns()),
        overhang_(row.integer("overhang")),
        row_local_(row.integer("row_local") != 0),
        clean_(row.integer("clean") != 0),
        q_dialect_(dialect_of(row, "q_dialect", platform)),
        k_dialect_(dialect_of(row, "k_dialect", platform)) {
    if (row_local_ && clean_) {
      throw BadRow(fmt::format("{}: row-local logits cannot be clean", row.where));
    }
  }

  std::int64_t capacity() const override { return windows_.rows; }

  TensorSet make_tensors() const override {
    const std::int64_t rows = windows_.rows;
    TensorSet tensors;
    tensors.add({"q", Dtype::u8, {rows, heads_, dim_}, {}, Role::input, false});
    tensors.add({"k", Dtype::u8, {keys_, dim_}, {}, Role::input, false});
    tensors.add({"k_scale", Dtype::f32, {keys_}, {}, Role::input, false});
    tensors.add({"weights", Dtype::f32, {rows, heads_}, {}, Role::input, false});
    tensors.add({"starts", Dtype::i32, {rows}, {}, Role::input, false});
    tensors.add({"ends", Dtype::i32, {rows}, {}, Role::input, false});
    tensors.add({"logits", Dtype::f32, {rows, padded_columns(columns())}, {}, Role::output, false});
    return tensors;
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    auto* starts = tensors.at("starts").data<std::int32_t>();
    auto* ends = tensors.at("ends").data<std::int32_t>();
    std::vector<bool> seen(static_cast<std::size_t>(keys_), false);
    for (std::int64_t row = 0; row < windows_.rows; ++row) {
      const Window window =
          row < step.live ? hung_over(windows_.of(step, row)) : Window{keys_, keys_};
      starts[row] = static_cast<std::int32_t>(window.start);
      ends[row] = static_cast<std::int32_t>(window.end);
      for (std::int64_t key = std::max<std::int64_t>(0, window.start);
           key < std::min(keys_, window.end); ++key) {
        seen[static_cast<std::size_t>(key)] = true;
      }
    }
    fill_keys(step, seen, tensors);
    fill_queries(step, step.live, q_dialect_, tensors.at("q"), tensors.at("weights"));
  }

  plumb_status launch(const plumb_op_entry& entry, const DeviceTensors& tensors, OpState*,
                      device::Stream stream) const override {
    plumb_fp8_mqa_logits_params params{};
    params.q = tensors.get<std::uint8_t>("q");
    params.k = tensors.get<std::uint8_t>("k");
    params.k_scale = tensors.get<float>("k_scale");
    params.weights = tensors.get<float>("weights");
    params.starts = tensors.get<std::int32_t>("starts");
    params.ends = tensors.get<std::int32_t>("ends");
    params.logits = tensors.get<float>("logits");
    params.rows = windows_.rows;
    params.keys = keys_;
    params.logits_row_stride = padded_columns(columns());
    params.heads = static_cast<std::int32_t>(heads_);
    params.dim = static_cast<std::int32_t>(dim_);
    params.max_seqlen_k = row_local_ ? static_cast<std::int32_t>(columns()) : 0;
    params.clean_logits = clean_ ? 1 : 0;
    params.q_dialect = format_of(q_dialect_);
    params.k_dialect = format_of(k_dialect_);
    params.stream = stream;
    return entry.launch(&params);
  }

  std::vector<TensorReport> judge(const Step& step, const TensorSet& tensors,
                                  const reference::Numerics& numerics,
                                  const plumb_numerics&) const override {
    const HostTensor& logits = tensors.at("logits");
    reference::Estimate expected = reference::fp8_mqa_logits(reference_input(tensors), numerics);
    expected.structured = step.fill != Fill::real;
    return {judge_floats(logits, expected, {}, groups_of(windows_.rows, 1, "row"), {},
                         promised_columns(tensors, logits.spec()))};
  }

  ColumnRanges promised_columns(const TensorSet& tensors, const TensorSpec&) const override {
    const reference::Fp8MqaLogits input = reference_input(tensors);
    ColumnRanges ranges;
    for (std::int64_t row = 0; row < windows_.rows; ++row) {
      const reference::KeyRange keys = key_range(input, row);
      const std::int64_t first = row_local_ ? 0 : keys.first;
      ranges.push_back(clean_ ? ColumnRange{0, keys_} : ColumnRange{first, first + keys.count});
    }
    return ranges;
  }

  double cost() const override { return logits_cost(windows_.rows, windows_.length, heads_, dim_); }
  double reference_cost() const override {
    return logits_reference_cost(windows_.rows, windows_.length, heads_, dim_);
  }
  double checked_factor() const override { return kLogitsCheckedFactor; }
  ReferenceWork reference_work() const override {
    return {.bytes = reference_bytes(make_tensors()),
            .multiply_adds = logits_multiply_adds(windows_.rows, windows_.length, heads_, dim_)};
  }

 private:
  std::int64_t columns() const { return row_local_ ? windows_.length : keys_; }

  // A window at the first or the last key begins or ends beyond it.
  Window hung_over(Window window) const {
    if (window.start == 0) window.start -= overhang_;
    if (window.end == keys_) window.end += overhang_;
    return window;
  }

  void fill_keys(const Step& step, const std::vector<bool>& seen, TensorSet& tensors) const {
    HostTensor& k = tensors.at("k");
    auto* scales = tensors.at("k_scale").data<float>();
    const KeyFill keys{step, mix(step.seed, 23), dim_, k_dialect_};
    for (std::int64_t key = 0; key < keys_; ++key) {
      auto* codes = k.row<std::uint8_t>(key);
      if (seen[static_cast<std::size_t>(key)]) {
        scales[key] = keys.write(key, codes);
      } else {
        std::fill(codes, codes + dim_, nan_code(k_dialect_));
        scales[key] = std::numeric_limits<float>::quiet_NaN();
      }
    }
  }

  reference::Fp8MqaLogits reference_input(const TensorSet& tensors) const {
    reference::Fp8MqaLogits input;
    input.q = tensors.at("q").data<std::uint8_t>();
    input.k = tensors.at("k").data<std::uint8_t>();
    input.k_scale = tensors.at("k_scale").data<float>();
    input.weights = tensors.at("weights").data<float>();
    input.starts = tensors.at("starts").data<std::int32_t>();
    input.ends = tensors.at("ends").data<std::int32_t>();
    input.rows = windows_.rows;
    input.keys = keys_;
    input.heads = heads_;
    input.dim = dim_;
    input.columns = padded_columns(columns());
    input.row_local = row_local_;
    input.clean = clean_;
    input.q_dialect = q_dialect_;
    input.k_dialect = k_dialect_;
    return input;
  }

  RaggedWindows windows_;
  std::int64_t heads_, dim_, keys_, overhang_;
  bool row_local_, clean_;
  reference::Dialect q_dialect_, k_dialect_;
};

}  // namespace

OpDefinition define_fp8_mqa_logits() {
  OpDefinition op;
  op.name = "fp8_mqa_logits";
  op.summary = "lightning indexer: fp8 scores of each row's window of keys in a prefill";
  op.parameters = ragged_window_parameters();
  op.parameters.insert(
      op.parameters.end(),
      {{"heads", 64, 1, 64, "indexer heads"},
       {"dim", 128, 16, 128, "dimensions of a head"},
       {"overhang", 0, 0, 1 << 20, "how far windows at the first and the last key go beyond it"},
       {"row_local", 0, 0, 1, "1: columns count from the row's first key (max_seqlen_k > 0)"},
       {"clean", 0, 0, 1, "1: columns outside of the window are -inf"}});
  op.word_parameters = {"q_dialect", "k_dialect"};
  op.make_problem = [](const Row& row,
                       const device::Properties& platform) -> std::unique_ptr<Problem> {
    return std::make_unique<Fp8MqaLogitsProblem>(row, platform);
  };
  op.row_count = "rows";
  return op;
}

}  // namespace plumb::cases
