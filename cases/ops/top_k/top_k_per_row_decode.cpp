// SPDX-License-Identifier: Apache-2.0
//
// Cases of top_k_per_row_decode: next_n rows per request, whose ends follow from sequence lengths.
// The batch has live and padded requests.
#include "reference/top_k/top_k_per_row_decode.h"

#include <plumb/ops/top_k.h>

#include "cases/ops/metadata/sequence_lengths.h"
#include "cases/ops/top_k/top_k.h"
#include "cases/ops/top_k/top_k_fill.h"
#include "cases/ops/top_k/top_k_order.h"

namespace plumb::cases {

namespace top_k_per_row_decode_cases {

using P = plumb_top_k_per_row_decode_params;

Formula members(TablePart<P>& t) {
  const Formula requests = parameter("requests"), next_n = t.scalar("next_n", &P::next_n);
  const Formula dims = t.scalar("seq_lens_dims", &P::seq_lens_dims);
  t.given(parameter("gap"), 0);
  add_selection(t, requests * next_n, parameter("length") + parameter("gap"));
  const Formula lengths = (dims - 1) * (next_n - 1) + 1;
  const Formula stride =
      t.scalar("seq_lens_row_stride", &P::seq_lens_row_stride, lengths + parameter("seq_lens_gap"));
  t.input("seq_lens", &P::seq_lens, {requests, lengths}, "one length, or the end of each row")
      .strides({stride, 1});
  return requests;
}

class TopKPerRowDecodeProblem final : public TableProblem<P> {
 public:
  TopKPerRowDecodeProblem(const Row& row, const device::Properties& platform)
      : TableProblem(table_of<members>(), row, platform),
        lengths_(sequence_lengths(row, "seq_lens_dims", "seq_lens_gap")),
        pattern_(pattern_named(row)),
        nan_of_both_signs_(!row.word("nan_order").empty()) {
    check_trivial(row, lengths_.length, p_.k);
  }

  void fill(const Step& step, TensorSet& tensors) const override {
    lengths_.fill(step, tensors.at("seq_lens"));
    const reference::TopKPerRowDecode input = reference_input(tensors);
    const std::int64_t live_rows = step.live * lengths_.next_n;
    HostTensor& logits = tensors.at("logits");
    reference::parallel_for(live_rows, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        fill_logits(
            logits, row, 0, row_end(input, row),
            {step.seed, step.fill, pattern_, k(), p_.logits_column_stride, nan_of_both_signs_});
      }
    });
    fill_dead_logits(logits, step, live_rows);
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
    double work = 0;
    for (std::int64_t request = 0; request < lengths_.requests; ++request) {
      const std::int64_t length = lengths_.length - lengths_.length_step * request;
      const auto rows = static_cast<double>(lengths_.next_n);
      work += rows * top_k_row_cost(p_.columns, length, p_.k);
    }
    return work;
  }
  double reference_cost() const override {
    return kTopKReferenceCost * static_cast<double>(p_.rows * p_.columns);
  }
  double checked_factor() const override { return kTopKCheckedFactor; }

 private:
  std::int32_t k() const { return static_cast<std::int32_t>(p_.k); }

  reference::TopKPerRowDecode reference_input(const TensorSet& tensors) const {
    reference::TopKPerRowDecode input;
    input.logits = tensors.at("logits").data<std::byte>();
    input.seq_lens = tensors.at("seq_lens").data<std::int32_t>();
    input.num_rows = p_.rows;
    input.columns = p_.columns;
    input.logits_row_stride = p_.logits_row_stride;
    input.logits_column_stride = p_.logits_column_stride;
    input.seq_lens_row_stride = p_.seq_lens_row_stride;
    input.seq_lens_dims = p_.seq_lens_dims;
    input.next_n = static_cast<std::int32_t>(p_.next_n);
    input.k = k();
    input.nan_order = static_cast<reference::NanOrder>(p_.nan_order);
    input.zeros_are_equal = p_.zeros == PLUMB_ZEROS_EQUAL;
    input.bf16 = p_.logits_format == PLUMB_LOGITS_BF16;
    return input;
  }

  TopKWindows selection(const TensorSet& tensors) const {
    TopKWindows selection{windows_of(reference_input(tensors)), {}, p_.columns, k()};
    selection.starts.assign(selection.windows.size(), 0);
    return selection;
  }

  SequenceLengths lengths_;
  std::optional<LogitPattern> pattern_;
  bool nan_of_both_signs_;
};

}  // namespace top_k_per_row_decode_cases

OpDefinition define_top_k_per_row_decode() {
  using namespace top_k_per_row_decode_cases;
  return {{"top_k_per_row_decode",
           "indices of the k largest logits of each row, ends from sequence lengths",
           {{"k", 512, 1, 65536, "indices per row"},
            {"requests", 4, 1, 65536, "padded batch"},
            {"next_n", 1, 1, 64, "rows per request"},
            {"seq_lens_dims", 1, 1, 2, "1: one length per request; 2: one end per row"},
            {"seq_lens_gap", 0, 0, 1024, "elements between the lengths of two requests"},
            {"length", 2048, 0, 1 << 24, "longest sequence, in columns"},
            {"length_step", 0, 0, 1 << 24, "how much shorter each further request is"},
            {"gap", 0, 0, 1 << 24, "garbage columns behind the longest sequence"},
            {"row_gap", 0, 0, 1 << 24, "elements between two rows of logits"},
            {"column_stride", 1, 1, 64, "elements from one column to the next"},
            kLogitsInBf16,
            kOutGap},
           {pattern_word()},
           {kNanOrder, kZeroOrder}},
          make_problem_of<TopKPerRowDecodeProblem>,
          {},
          "requests",
          &table_of<members>()};
}

}  // namespace plumb::cases
