// SPDX-License-Identifier: Apache-2.0
#include "cases/judge/expectation.h"

#include <iterator>
#include <utility>

#include "cases/judge/judge_choices.h"
#include "cases/judge/judge_codes.h"
#include "cases/judge/right_values.h"

namespace plumb::cases {

namespace {

class FloatTruth final : public Truth {
 public:
  FloatTruth(reference::Estimate estimate, std::vector<RowGroup> groups)
      : estimate_(std::move(estimate)), groups_(std::move(groups)) {}

  TensorReport compare(const HostTensor& stored, const RowMask& promised,
                       const ColumnRanges& columns) const override {
    return judge_floats(stored, estimate_, promised, groups_, columns);
  }
  void put(const HostTensor& stored, const RowMask& promised, const ColumnRanges& columns,
           RightValues& right) const override {
    right.put(stored, promised, columns, [&](std::int64_t row, std::int64_t column) {
      const auto i = static_cast<std::size_t>(row * estimate_.columns + column);
      const double shift = estimate_.shift.empty() ? 0 : estimate_.shift[i];
      return rounded_bits(stored.spec().dtype, estimate_.value[i] + shift);
    });
  }
  const reference::Estimate* estimate() const override { return &estimate_; }

 private:
  reference::Estimate estimate_;
  std::vector<RowGroup> groups_;
};

class ExactTruth final : public Truth {
 public:
  explicit ExactTruth(std::vector<std::int64_t> values) : values_(std::move(values)) {}

  TensorReport compare(const HostTensor& stored, const RowMask& promised,
                       const ColumnRanges&) const override {
    return judge_exact(stored, values_, promised);
  }
  void put(const HostTensor& stored, const RowMask& promised, const ColumnRanges&,
           RightValues& right) const override {
    right.put(stored, promised, {}, [&](std::int64_t row, std::int64_t column) {
      return static_cast<std::uint64_t>(
          values_[static_cast<std::size_t>(row * stored.columns() + column)]);
    });
  }

 private:
  std::vector<std::int64_t> values_;
};

class BitTruth final : public Truth {
 public:
  BitTruth(HostTensor right, std::string_view what) : right_(std::move(right)), what_(what) {}

  TensorReport compare(const HostTensor& stored, const RowMask& promised,
                       const ColumnRanges& columns) const override {
    return judge_right_bits(stored, right_, promised, what_, columns);
  }
  void put(const HostTensor& stored, const RowMask& promised, const ColumnRanges& columns,
           RightValues& right) const override {
    right.put_bits(stored, right_, promised, columns);
  }

 private:
  HostTensor right_;
  std::string what_;
};

class CodeTruth final : public Truth {
 public:
  explicit CodeTruth(reference::CodeEstimate codes) : codes_(std::move(codes)) {}

  TensorReport compare(const HostTensor& stored, const RowMask& promised,
                       const ColumnRanges&) const override {
    return judge_codes(stored, codes_, promised);
  }
  void put(const HostTensor& stored, const RowMask& promised, const ColumnRanges&,
           RightValues& right) const override {
    right.put(stored, promised, {}, [&](std::int64_t row, std::int64_t column) {
      return honest_codes(codes_, row * stored.columns() + column).exact;
    });
  }

 private:
  reference::CodeEstimate codes_;
};

class ChoiceTruth final : public Truth {
 public:
  explicit ChoiceTruth(reference::ScoredChoices choices) : choices_(std::move(choices)) {}

  TensorReport compare(const HostTensor& ids, const RowMask&, const ColumnRanges&) const override {
    return judge_choices(ids, choices_);
  }
  void put(const HostTensor& ids, const RowMask&, const ColumnRanges&,
           RightValues& right) const override {
    std::vector<std::int32_t> exact;
    right.put(ids, {}, {}, [&](std::int64_t row, std::int64_t column) {
      if (column == 0) exact = choices_.exact(row);
      return static_cast<std::uint32_t>(exact[static_cast<std::size_t>(column)]);
    });
  }

 private:
  reference::ScoredChoices choices_;
};

std::shared_ptr<const HostTensor> same(const HostTensor& tensor) {
  return std::make_shared<const HostTensor>(tensor.alias());
}

}  // namespace

TensorReport compare(const Expectation& expectation) {
  TensorReport report =
      expectation.truth->compare(*expectation.stored, expectation.promised, expectation.columns);
  report.tensor += expectation.basis;
  return report;
}

std::vector<TensorReport> compare(const Expectations& expectations) {
  std::vector<TensorReport> reports;
  for (const Expectation& one : expectations) reports.push_back(compare(one));
  return reports;
}

void append(Expectations more, Expectations& to) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

Expectation expect_floats(const HostTensor& stored, reference::Estimate estimate, RowMask promised,
                          std::vector<RowGroup> groups, ColumnRanges columns) {
  return {same(stored), std::make_shared<const FloatTruth>(std::move(estimate), std::move(groups)),
          std::move(promised), std::move(columns)};
}

Expectation expect_exact(const HostTensor& stored, std::vector<std::int64_t> values,
                         RowMask promised) {
  return {same(stored), std::make_shared<const ExactTruth>(std::move(values)), std::move(promised)};
}

Expectation expect_bits(const HostTensor& stored, HostTensor right, RowMask promised,
                        std::string_view what) {
  return {same(stored), std::make_shared<const BitTruth>(std::move(right), what),
          std::move(promised)};
}

Expectation expect_codes(const HostTensor& stored, reference::CodeEstimate codes,
                         RowMask promised) {
  return {same(stored), std::make_shared<const CodeTruth>(std::move(codes)), std::move(promised)};
}

Expectation expect_choices(const HostTensor& ids, reference::ScoredChoices choices) {
  return {same(ids), std::make_shared<const ChoiceTruth>(std::move(choices))};
}

}  // namespace plumb::cases
