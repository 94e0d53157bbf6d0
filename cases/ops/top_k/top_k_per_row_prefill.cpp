// SPDX-License-Identifier: Apache-2.0
//
// Cases of top_k_per_row_prefill: rows of one or more requests in one ragged call.
#include "reference/top_k/top_k_per_row_prefill.h"

#include <plumb/ops/top_k.h>

#include <utility>

#include "cases/ops/indexer/ragged_windows.h"
#include "cases/ops/top_k/top_k.h"
#include "cases/ops/top_k/top_k_fill.h"
#include "cases/ops/top_k/top_k_order.h"

namespace plumb::cases {

namespace top_k_per_row_prefill_cases {

using P = plumb_top_k_per_row_prefill_params;

// A recorded call does not say which request a row belongs to: all its columns are one window.
Formula members(TablePart<P>& t) {
  t.given(parameter("requests"), 1);
  t.given(parameter("lead"), 0);
  t.given(parameter("gap"), 0);
  const Formula rows = parameter("rows");
  add_selection(
      t, rows,
      parameter("lead") + parameter("requests") * (parameter("length") + parameter("gap")));
  t.input("row_starts", &P::row_starts, {rows}, "first column of each window");
  t.input("row_ends", &P::row_ends, {rows}, "column behind each window");
  return rows;
}

class TopKPerRowPrefillProblem final : public TableProblem<P> {
 public:
  TopKPerRowPrefillProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        windows_(ragged_windows(row)),
        pattern_(pattern_named(row)),
        nan_of_both_signs_(!row.word("nan_order").empty()) {
    check_trivial(row, windows_.length, p_.k);
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    HostTensor& logits = tensors.at("logits");
    auto* starts = tensors.at("row_starts").data<std::int32_t>();
    auto* ends = tensors.at("row_ends").data<std::int32_t>();
    reference::parallel_for(p_.rows, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const bool live = row < step.live;
        const Window window = live ? windows_.of(step, row) : Window{p_.columns, p_.columns};
        starts[row] = static_cast<std::int32_t>(window.start);
        ends[row] = static_cast<std::int32_t>(window.end);
        if (!live) continue;
        fill_logits(
            logits, row, window.start, window.end,
            {step.seed, step.fill, pattern_, k(), p_.logits_column_stride, nan_of_both_signs_});
      }
    });
    fill_dead_logits(logits, step, step.live);
  }

  Expectations expect(const Step&, const TensorSet& tensors, const reference::Numerics&,
                      const plumb_numerics& declared) const override {
    return {expect_top_k(tensors, selection(tensors), declared)};
  }

  std::optional<HostTensor> canonical(const TensorSet& tensors, const TensorSpec& spec,
                                      const plumb_numerics& declared) const override {
    if (spec.name != "indices") return std::nullopt;
    return canonical_selection(tensors.at("indices"), selection(tensors), declared);
  }

  double cost() const override {
    const Step full{.live = p_.rows};
    double work = 0;
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      const Window window = windows_.of(full, row);
      work += top_k_row_cost(p_.columns, window.end - window.start, p_.k);
    }
    return work;
  }
  double reference_cost() const override {
    return kTopKReferenceCost * static_cast<double>(p_.rows * p_.columns);
  }
  double checked_factor() const override { return kTopKCheckedFactor; }

 private:
  std::int32_t k() const { return static_cast<std::int32_t>(p_.k); }

  TopKWindows selection(const TensorSet& tensors) const {
    reference::TopKPerRowPrefill input;
    input.logits = tensors.at("logits").data<std::byte>();
    input.row_starts = tensors.at("row_starts").data<std::int32_t>();
    input.row_ends = tensors.at("row_ends").data<std::int32_t>();
    input.num_rows = p_.rows;
    input.columns = p_.columns;
    input.logits_row_stride = p_.logits_row_stride;
    input.logits_column_stride = p_.logits_column_stride;
    input.k = k();
    input.nan_order = static_cast<reference::NanOrder>(p_.nan_order);
    input.zeros_are_equal = p_.zeros == PLUMB_ZEROS_EQUAL;
    input.bf16 = p_.logits_format == PLUMB_LOGITS_BF16;
    TopKWindows selection{windows_of(input), {}, p_.columns, k()};
    selection.starts.assign(input.row_starts, input.row_starts + p_.rows);
    return selection;
  }

  RaggedWindows windows_;
  std::optional<LogitPattern> pattern_;
  bool nan_of_both_signs_;
};

}  // namespace top_k_per_row_prefill_cases

OpDefinition define_top_k_per_row_prefill() {
  using namespace top_k_per_row_prefill_cases;
  std::vector<Parameter> parameters = ragged_window_parameters();
  parameters.insert(parameters.end(),
                    {{"k", 512, 1, 65536, "indices per row"},
                     {"row_gap", 0, 0, 1 << 24, "elements between two rows of logits"},
                     {"column_stride", 1, 1, 64, "elements from one column to the next"},
                     kLogitsInBf16,
                     kOutGap});
  return {{"top_k_per_row_prefill",
           "row-local indices of the k largest logits of each row's window of columns",
           std::move(parameters),
           {pattern_word()},
           {kNanOrder, kZeroOrder}},
          make_problem_of<TopKPerRowPrefillProblem>,
          {},
          "rows",
          &table_of<members>()};
}

}  // namespace plumb::cases
