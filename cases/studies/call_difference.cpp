// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/call_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "cases/studies/allowed_difference.h"

namespace plumb::cases {

namespace {

// One of the two calls, with its expectations.
class ComparedCall {
 public:
  explicit ComparedCall(const OutsideCall& call)
      : call_(call),
        step_(recorded_step(call.problem())),
        expectations_(call.expect(call.tensors())) {}

  const OutsideCall& call() const { return call_; }
  bool has(const std::string& tensor) const {
    return call_.tensors().contains(tensor) && call_.is_given(tensor);
  }
  HostTensor tensor(const std::string& name) const {
    const HostTensor& stored = call_.tensors().at(name);
    const auto canonical =
        call_.problem().canonical(call_.tensors(), stored.spec(), call_.numerics());
    return canonical ? *canonical : stored;
  }
  RowMask promised(const TensorSpec& spec) const {
    return call_.problem().promised_rows_by_inputs(step_, call_.tensors(), spec);
  }
  ColumnRanges columns(const TensorSpec& spec) const {
    return call_.problem().promised_columns(call_.tensors(), spec);
  }
  // The error model of a tensor, in the tensor's own shape; null if there is none.
  const reference::Estimate* estimate(const HostTensor& tensor) const {
    for (const Expectation& one : expectations_) {
      const reference::Estimate* const estimate = one.truth->estimate();
      const bool same = estimate != nullptr && one.stored->spec().name == tensor.spec().name &&
                        estimate->rows == tensor.rows() && estimate->columns == tensor.columns();
      if (same) return estimate;
    }
    return nullptr;
  }
  // Failed verdicts on an output, or on a tensor that was extracted from it.
  std::vector<TensorReport> failures(const std::string& tensor) const {
    std::vector<TensorReport> failed;
    for (const Expectation& one : expectations_) {
      const TensorSpec& spec = one.stored->spec();
      if ((spec.origin ? spec.origin->tensor : spec.name) != tensor) continue;
      TensorReport report = compare(one);
      // Rows of an extracted tensor are numbered differently.
      if (spec.origin) report.wrong_rows.clear();
      if (!report.passed()) failed.push_back(std::move(report));
    }
    return failed;
  }

 private:
  const OutsideCall& call_;
  Step step_;
  Expectations expectations_;
};

// One output of both calls, with error models and promises.
struct SameTensor {
  HostTensor a, b;
  const reference::Estimate *of_a, *of_b;
  RowMask promised_a, promised_b;
  ColumnRanges columns_a, columns_b;

  double bound(std::int64_t i, std::int64_t j) const {
    return of_a == nullptr || of_b == nullptr ? -1 : allowed_difference(*of_a, i, *of_b, j);
  }
};

bool is_in(const ColumnRanges& columns, const HostTensor& tensor, std::int64_t row,
           std::int64_t column) {
  const ColumnRange range = columns_of(columns, tensor, row);
  return range.begin <= column && column < range.end;
}

std::string values_at(const SameTensor& both, std::int64_t row_a, std::int64_t column_a,
                      std::int64_t row_b, std::int64_t column_b) {
  const std::string at_a = both.a.coordinates(row_a, column_a);
  const std::string at_b = both.b.coordinates(row_b, column_b);
  return fmt::format("{}: {:.9g} and {:.9g}", at_a == at_b ? at_a : at_a + " and " + at_b,
                     both.a.value(row_a, column_a), both.b.value(row_b, column_b));
}

// Compares one pair of rows in one output.
class PairComparison {
 public:
  PairComparison(const SameTensor& both, TensorDifference& difference)
      : both_(both), difference_(difference) {}

  void compare(const RowSegment& a, const RowSegment& b) {
    const bool judged =
        is_promised(both_.promised_a, a.row) && is_promised(both_.promised_b, b.row);
    if (!judged) return;
    std::int64_t differ = 0;
    for (std::int64_t i = 0; i < std::min(a.count, b.count); ++i) {
      differ += compare_element(a.row, a.begin + i, b.row, b.begin + i);
    }
    ++difference_.rows;
    difference_.rows_differ += differ > 0;
    differs = differs || differ > 0;
  }

  bool differs = false, beyond = false;

 private:
  bool compare_element(std::int64_t row_a, std::int64_t column_a, std::int64_t row_b,
                       std::int64_t column_b) {
    const bool judged = is_in(both_.columns_a, both_.a, row_a, column_a) &&
                        is_in(both_.columns_b, both_.b, row_b, column_b);
    if (!judged) return false;
    ++difference_.elements;
    const std::size_t size = size_of(both_.a.spec().dtype);
    const auto bytes = [&](const HostTensor& tensor, std::int64_t row, std::int64_t column) {
      return tensor.bytes().data() +
             static_cast<std::size_t>(tensor.row_offset(row) + column) * size;
    };
    if (std::memcmp(bytes(both_.a, row_a, column_a), bytes(both_.b, row_b, column_b), size) == 0) {
      return false;
    }
    if (difference_.elements_differ++ == 0) {
      difference_.first = values_at(both_, row_a, column_a, row_b, column_b);
    }
    const double bound =
        both_.bound(row_a * both_.a.columns() + column_a, row_b * both_.b.columns() + column_b);
    if (bound < 0) return true;
    const double share =
        share_of_allowed(both_.a.value(row_a, column_a), both_.b.value(row_b, column_b), bound);
    beyond = beyond || share > 1;
    if (share > difference_.of_bound) {
      difference_.of_bound = share;
      difference_.largest = values_at(both_, row_a, column_a, row_b, column_b);
    }
    return true;
  }

  const SameTensor& both_;
  TensorDifference& difference_;
};

std::vector<RowSegment> whole_rows(const HostTensor& tensor) {
  std::vector<RowSegment> segments;
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    segments.push_back({row, 0, tensor.columns()});
  }
  return segments;
}

class CallComparison {
 public:
  CallComparison(const OutsideCall& a, const OutsideCall& b, const std::vector<RowPair>& pairs)
      : a_(a), b_(b), pairs_(pairs) {
    if (!pairs.empty()) {
      rows_a_ = CallRows::of(a);
      rows_b_ = CallRows::of(b);
      if (!rows_a_ || !rows_b_) throw BadRow("its rows have no places of their own");
    }
    result_.differs.resize(std::max<std::size_t>(1, pairs.size()));
    result_.beyond.resize(result_.differs.size());
  }

  CallDifference run() {
    for (const HostTensor& tensor : a_.call().tensors().all()) {
      const std::string& name = tensor.spec().name;
      if (tensor.spec().role != Role::output || !a_.has(name) || !b_.has(name)) continue;
      if (tensor.elements() != 0) compare_tensor(name);
    }
    return std::move(result_);
  }

 private:
  void compare_tensor(const std::string& name) {
    const HostTensor a = a_.tensor(name), b = b_.tensor(name);
    const SameTensor both{.a = a,
                          .b = b,
                          .of_a = a_.estimate(a),
                          .of_b = b_.estimate(b),
                          .promised_a = a_.promised(a.spec()),
                          .promised_b = b_.promised(b.spec()),
                          .columns_a = a_.columns(a.spec()),
                          .columns_b = b_.columns(b.spec())};
    TensorDifference difference{.tensor = name, .first = {}, .largest = {}};
    std::vector<std::size_t> differ;  // indices of pairs that differ in this output
    for (std::size_t i = 0; i < result_.differs.size(); ++i) {
      PairComparison pair(both, difference);
      const auto in_a = segments(rows_a_, a, i, &RowPair::a);
      const auto in_b = segments(rows_b_, b, i, &RowPair::b);
      for (std::size_t k = 0; k < std::min(in_a.size(), in_b.size()); ++k) {
        pair.compare(in_a[k], in_b[k]);
      }
      if (pair.differs) differ.push_back(i);
      if (pair.beyond) result_.beyond[i] = true;
    }
    if (differ.empty()) return;
    for (const std::size_t i : differ) result_.differs[i] = true;
    if (difference.of_bound < 0 && both.of_a != nullptr) difference.of_bound = 0;
    blame(a_, rows_a_, a, differ, &RowPair::a, result_.a_wrong);
    blame(b_, rows_b_, b, differ, &RowPair::b, result_.b_wrong);
    result_.tensors.push_back(std::move(difference));
  }

  std::vector<RowSegment> segments(const std::optional<CallRows>& rows, const HostTensor& tensor,
                                   std::size_t pair, std::int64_t RowPair::* side) const {
    if (!rows) return whole_rows(tensor);
    return rows->segments(tensor.spec().name, pairs_[pair].*side);
  }

  // Records the first failed verdict on a differing row. A verdict that names no rows counts for
  // all rows.
  void blame(const ComparedCall& call, const std::optional<CallRows>& rows,
             const HostTensor& tensor, const std::vector<std::size_t>& differ,
             std::int64_t RowPair::* side, std::string& wrong) {
    for (const TensorReport& report : call.failures(tensor.spec().name)) {
      const std::set<std::int64_t> named(report.wrong_rows.begin(), report.wrong_rows.end());
      for (const std::size_t i : differ) {
        const auto parts = segments(rows, tensor, i, side);
        const bool meant = named.empty() || std::ranges::any_of(parts, [&](const RowSegment& part) {
                             return named.contains(part.row);
                           });
        if (!meant) continue;
        result_.beyond[i] = true;
        if (wrong.empty()) wrong = report.failures.front();
      }
    }
  }

  ComparedCall a_, b_;
  const std::vector<RowPair>& pairs_;
  std::optional<CallRows> rows_a_, rows_b_;
  CallDifference result_;
};

}  // namespace

CallDifference diff_calls(const OutsideCall& a, const OutsideCall& b,
                          const std::vector<RowPair>& pairs) {
  return CallComparison(a, b, pairs).run();
}

}  // namespace plumb::cases
