// SPDX-License-Identifier: Apache-2.0
//
// Cases of fp8_mqa_logits: rows of one or more requests in one ragged prefill. Keys that no row
// sees are NaN, and so are their scales.
#include "reference/indexer/fp8_mqa_logits.h"

#include <fmt/format.h>
#include <plumb/ops/indexer.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "cases/ops/indexer/indexer_inputs.h"
#include "cases/ops/indexer/ragged_windows.h"
#include "cases/tables/dialect.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace fp8_mqa_logits_cases {

using P = plumb_fp8_mqa_logits_params;

Formula members(TablePart<P>& t) {
  const Formula rows = t.scalar("rows", &P::rows), heads = t.scalar("heads", &P::heads);
  const Formula dim = t.scalar("dim", &P::dim);
  const Formula length = parameter("length"), row_local = parameter("row_local");
  // A recorded call does not say which request owns a key, so that all keys are one window.
  const Formula columns = t.value("max_seqlen_k", &P::max_seqlen_k);
  t.given(row_local, !!columns);
  t.given(length, or_else(columns, t.value("keys", &P::keys)));
  t.given(parameter("lead"), 0);
  t.given(parameter("requests"), 1);
  const Formula keys = t.scalar(
      "keys", &P::keys, parameter("lead") + parameter("requests") * (length + parameter("gap")));
  t.scalar("max_seqlen_k", &P::max_seqlen_k, row_local * length);
  t.scalar("clean_logits", &P::clean_logits, parameter("clean"));
  t.word("q_dialect", &P::q_dialect, dialect_words("q_dialect"));
  t.word("k_dialect", &P::k_dialect, dialect_words("k_dialect"));
  t.choice("scaled", &P::scaled, kScaledKeys);
  const Formula stride = t.caller_scalar("logits_row_stride", &P::logits_row_stride,
                                         padded_columns(row_local * length + !row_local * keys));
  t.input("q", &P::q, {rows, heads, dim}, "codes");
  t.input("k", &P::k, {keys, dim}, "codes");
  t.input("k_scale", &P::k_scale, {keys}, "of each key");
  t.input("weights", &P::weights, {rows, heads}, "of each head");
  t.input("starts", &P::starts, {rows}, "first key of each row");
  t.input("ends", &P::ends, {rows}, "behind the last key of each row");
  t.output("logits", &P::logits, {rows, stride}, "scores; columns behind the keys are padding");
  return rows;
}

class Fp8MqaLogitsProblem final : public TableProblem<P> {
 public:
  Fp8MqaLogitsProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        windows_(ragged_windows(row)),
        overhang_(row.integer("overhang")),
        row_local_(row.integer("row_local") != 0),
        q_dialect_(dialect_of(row, "q_dialect", platform)),
        k_dialect_(dialect_of(row, "k_dialect", platform)) {
    if (row_local_ && p_.clean_logits != 0) {
      throw BadRow(fmt::format("{}: row-local logits cannot be clean", row.where));
    }
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    auto* starts = tensors.at("starts").data<std::int32_t>();
    auto* ends = tensors.at("ends").data<std::int32_t>();
    std::vector<bool> seen(static_cast<std::size_t>(p_.keys), false);
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      const Window window =
          row < step.live ? hung_over(windows_.of(step, row)) : Window{p_.keys, p_.keys};
      starts[row] = static_cast<std::int32_t>(window.start);
      ends[row] = static_cast<std::int32_t>(window.end);
      for (std::int64_t key = std::max<std::int64_t>(0, window.start);
           key < std::min(p_.keys, window.end); ++key) {
        seen[static_cast<std::size_t>(key)] = true;
      }
    }
    fill_keys(step, seen, tensors);
    fill_queries(step, step.live, q_dialect_, tensors.at("q"), tensors.at("weights"));
  }

  Expectations expect(const Step& step, const TensorSet& tensors,
                      const reference::Numerics& numerics, const plumb_numerics&) const override {
    const HostTensor& logits = tensors.at("logits");
    reference::Estimate expected = reference::fp8_mqa_logits(reference_input(tensors), numerics);
    expected.structured = step.fill != Fill::real;
    return {expect_floats(logits, std::move(expected), {}, groups_of(p_.rows, 1, "row"),
                          promised_columns(tensors, logits.spec()))};
  }

  ColumnRanges promised_columns(const TensorSet& tensors, const TensorSpec&) const override {
    const reference::Fp8MqaLogits input = reference_input(tensors);
    ColumnRanges ranges;
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      const reference::KeyRange keys = key_range(input, row);
      const std::int64_t first = row_local_ ? 0 : keys.first;
      ranges.push_back(p_.clean_logits != 0 ? ColumnRange{0, p_.keys}
                                            : ColumnRange{first, first + keys.count});
    }
    return ranges;
  }

  double cost() const override { return logits_cost(p_.rows, windows_.length, p_.heads, p_.dim); }
  double reference_cost() const override {
    return logits_reference_cost(p_.rows, windows_.length, p_.heads, p_.dim);
  }
  double checked_factor() const override { return kLogitsCheckedFactor; }
  ReferenceWork reference_work() const override {
    return {.bytes = reference_bytes(make_tensors()),
            .multiply_adds = logits_multiply_adds(p_.rows, windows_.length, p_.heads, p_.dim)};
  }

 private:
  // Extends a window that begins at the first key, or ends at the last one, by `overhang_` keys.
  Window hung_over(Window window) const {
    if (window.start == 0) window.start -= overhang_;
    if (window.end == p_.keys) window.end += overhang_;
    return window;
  }

  void fill_keys(const Step& step, const std::vector<bool>& seen, TensorSet& tensors) const {
    HostTensor& k = tensors.at("k");
    auto* scales = tensors.at("k_scale").data<float>();
    const KeyFill keys{step, mix(step.seed, 23), p_.dim, k_dialect_};
    for (std::int64_t key = 0; key < p_.keys; ++key) {
      auto* codes = k.row<std::uint8_t>(key);
      if (seen[static_cast<std::size_t>(key)]) {
        scales[key] = keys.write(key, codes);
      } else {
        std::fill(codes, codes + p_.dim, reference::e4m3_nan_code(k_dialect_));
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
    input.rows = p_.rows;
    input.keys = p_.keys;
    input.heads = p_.heads;
    input.dim = p_.dim;
    input.columns = p_.logits_row_stride;
    input.row_local = row_local_;
    input.clean = p_.clean_logits != 0;
    input.scaled_keys = p_.scaled == PLUMB_SCALED_OPERAND;
    input.q_dialect = q_dialect_;
    input.k_dialect = k_dialect_;
    check_windows(input);
    return input;
  }

  // Throws BadRow if a row of a recorded call has more keys than logits has columns.
  void check_windows(const reference::Fp8MqaLogits& input) const {
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      const reference::KeyRange keys = key_range(input, row);
      const std::int64_t columns = keys.count + (row_local_ ? 0 : keys.first);
      if (keys.count > 0 && columns > input.columns) {
        throw BadRow(fmt::format("row {} has keys up to column {}, and logits has {} columns", row,
                                 columns - 1, input.columns));
      }
    }
  }

  RaggedWindows windows_;
  std::int64_t overhang_;
  bool row_local_;
  reference::Dialect q_dialect_, k_dialect_;
};

}  // namespace fp8_mqa_logits_cases

OpDefinition define_fp8_mqa_logits() {
  using namespace fp8_mqa_logits_cases;
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
  op.word_parameters = {dialect_word("q_dialect", "of the queries; else the platform's"),
                        dialect_word("k_dialect", "of the keys; else the platform's")};
  op.choices = {kScaledKeys};
  op.make_problem = make_problem_of<Fp8MqaLogitsProblem>;
  op.table = &table_of<members>();
  op.row_count = "rows";
  return op;
}

}  // namespace plumb::cases
