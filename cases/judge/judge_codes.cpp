// SPDX-License-Identifier: Apache-2.0
#include "cases/judge/judge_codes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <stdexcept>

#include "cases/judge/error_pattern.h"

namespace plumb::cases {

namespace {

using reference::CodeEstimate;
using reference::HonestCodes;

void check_shapes(const HostTensor& got, const CodeEstimate& expected, const RowMask& promised) {
  const auto& before = expected.before;
  const bool wide = expected.format == reference::CodeFormat::bf16;
  if (got.spec().dtype != (wide ? Dtype::bf16 : Dtype::u8) || got.rows() != before.rows ||
      got.columns() != before.columns ||
      (!promised.empty() && static_cast<std::int64_t>(promised.size()) != before.rows)) {
    throw std::invalid_argument(
        fmt::format("{}: {} x {} codes stored as {}, {} x {} expected, {} rows promised",
                    got.spec().name, got.rows(), got.columns(), name_of(got.spec().dtype),
                    before.rows, before.columns, promised.size()));
  }
}

std::uint16_t code_at(const HostTensor& tensor, std::int64_t row, std::int64_t column) {
  if (tensor.spec().dtype == Dtype::bf16) return tensor.row<std::uint16_t>(row)[column];
  return tensor.row<std::uint8_t>(row)[column];
}

// True if the format's encoder can write this code: no NaN, and no negative zero in formats whose
// encoders write none.
bool is_written(reference::CodeFormat format, std::uint16_t code) {
  return !is_nan(format, code) && encode(format, decode(format, code)) == code;
}

// Codes that may flip (lie on the other side of a rounding boundary), in groups that flip together.
// Two codes flip together if they share an error, or if their numbers are equal, because equal
// numbers are computed alike everywhere.
class Flippable {
 public:
  void add(double probability, std::int64_t shared_error, double number) {
    expected_ += probability;
    const std::size_t self = parents_.size();
    parents_.push_back(self);
    join(self, by_error_.try_emplace(shared_error, self).first->second);
    join(self, by_number_.try_emplace(std::abs(number), self).first->second);
  }

  double expected() const { return expected_; }
  std::int64_t most_together() {
    std::map<std::size_t, std::int64_t> sizes;
    std::int64_t most = 1;
    for (std::size_t i = 0; i < parents_.size(); ++i) most = std::max(most, ++sizes[root(i)]);
    return most;
  }

 private:
  std::size_t root(std::size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) { parents_[root(a)] = root(b); }

  double expected_ = 0;
  std::vector<std::size_t> parents_;  // union-find forest: codes that flip together have one root
  std::map<std::int64_t, std::size_t> by_error_;
  std::map<double, std::size_t> by_number_;
};

// Compares one tensor with its code estimate, row by row.
class CodeVerdict {
 public:
  CodeVerdict(const HostTensor& got, const CodeEstimate& expected)
      : got_(got), expected_(expected), wrong_(static_cast<std::size_t>(got.elements())) {
    report_.tensor = got.spec().name;
    report_.rows_total = got.original_rows();
  }

  void compare_row(std::int64_t row) {
    ++report_.rows_compared;
    const std::int64_t wrong_before = report_.wrong_elements, flips_before = report_.flips;
    for (std::int64_t column = 0; column < got_.columns(); ++column) {
      const HonestCodes honest = compare(row, column);
      if (!(honest.flip > 0)) continue;
      const std::int64_t i = row * got_.columns() + column;
      flippable_.add(honest.flip, i - column % expected_.shared_error, expected_.before.value[i]);
    }
    if (report_.wrong_elements > wrong_before) report_.wrong_rows.push_back(row);
    if (report_.flips > flips_before) flipped_rows_.push_back(row);
  }

  TensorReport finish() {
    report_.elements_compared = report_.rows_compared * got_.columns();
    const auto compared = static_cast<double>(std::max<std::int64_t>(report_.elements_compared, 1));
    report_.zero_share = static_cast<double>(zeros_) / compared;
    report_.observability = static_cast<double>(observable_) / compared;
    if (!report_.wrong_rows.empty()) {
      report_wrong();
      const std::vector<double> values = as_stored();
      report_.pattern = error_pattern(
          {got_, values, [](std::int64_t) { return 0.0; }, report_.wrong_rows, wrong_});
    }
    report_flips();
    report_.wrong_rows = original_rows(got_, std::move(report_.wrong_rows));
    if (report_.worst) report_.worst->row = got_.original_row(report_.worst->row);
    return report_;
  }

 private:
  HonestCodes compare(std::int64_t row, std::int64_t column) {
    const std::int64_t i = row * got_.columns() + column;
    const HonestCodes honest = honest_codes(expected_, i);
    const std::uint16_t code = code_at(got_, row, column);
    const int order = order_of(expected_.format, code);
    const bool right = honest.nan ? is_nan(expected_.format, code)
                                  : honest.least <= order && order <= honest.most &&
                                        is_written(expected_.format, code);
    const double value = decode(expected_.format, honest.exact);
    zeros_ += value == 0;
    const int zero = order_of(expected_.format, 0);
    observable_ += value != 0 && !(honest.least <= zero && zero <= honest.most);
    if (!right) {
      mark_wrong(row, column, honest, code);
    } else if (!honest.nan && code != honest.exact) {
      ++report_.flips;
      report_.margin = std::max(report_.margin, flip_effort(expected_, i, order));
    }
    return honest;
  }

  void mark_wrong(std::int64_t row, std::int64_t column, const HonestCodes& honest,
                  std::uint16_t code) {
    if (!report_.worst) {
      report_.worst = Mismatch{row,
                               column,
                               got_.coordinates(row, column),
                               decode(expected_.format, honest.exact),
                               decode(expected_.format, code),
                               0,
                               reference::kInfinity};
      first_ = fmt::format("first {}: expected {}, got {}, exact value {:.9g}",
                           report_.worst->coordinates, shown(honest.exact), shown(code),
                           expected_.before.value[row * got_.columns() + column]);
    }
    report_.margin = reference::kInfinity;
    ++report_.wrong_elements;
    wrong_[row * got_.columns() + column] = 1;
  }

  // Text for a code with its value: "0x77 (240)".
  std::string shown(std::uint16_t code) const {
    return fmt::format("{:#04x} ({:g})", code, decode(expected_.format, code));
  }

  void report_wrong() {
    const std::int64_t row = report_.wrong_rows.front();
    const auto begin = wrong_.begin() + row * got_.columns();
    report_.failures.push_back(
        fmt::format("{}: {} wrong; row {} differs in {} of {} codes ({})", report_.tensor,
                    rows_of(original_rows(got_, report_.wrong_rows), report_.rows_total),
                    got_.original_row(row), std::count(begin, begin + got_.columns(), 1),
                    got_.columns(), first_));
  }

  void report_flips() {
    const std::int64_t most =
        reference::most_honest_flips(flippable_.expected(), flippable_.most_together());
    if (report_.flips <= most) return;
    report_.failures.push_back(
        fmt::format("{}: {} on the other side of a rounding boundary in {}; right arithmetic "
                    "has {:.2g} on average, at most {}",
                    report_.tensor, counted(report_.flips, "code"),
                    rows_of(original_rows(got_, flipped_rows_), report_.rows_total),
                    flippable_.expected(), most));
    report_.wrong_elements += report_.flips;
    std::vector<std::int64_t> rows;
    std::set_union(report_.wrong_rows.begin(), report_.wrong_rows.end(), flipped_rows_.begin(),
                   flipped_rows_.end(), std::back_inserter(rows));
    report_.wrong_rows = std::move(rows);
  }

  // Expected codes in the same form as HostTensor::value returns stored ones.
  std::vector<double> as_stored() const {
    std::vector<double> values;
    for (std::int64_t i = 0; i < got_.elements(); ++i) {
      const std::uint16_t code = honest_codes(expected_, i).exact;
      values.push_back(got_.spec().dtype == Dtype::bf16 ? decode(expected_.format, code) : code);
    }
    return values;
  }

  const HostTensor& got_;
  const CodeEstimate& expected_;
  TensorReport report_;
  WrongElements wrong_;
  std::vector<std::int64_t> flipped_rows_;
  std::string first_;
  Flippable flippable_;
  std::int64_t zeros_ = 0, observable_ = 0;
};

}  // namespace

TensorReport judge_codes(const HostTensor& got, const CodeEstimate& expected,
                         const RowMask& promised) {
  check_shapes(got, expected, promised);
  CodeVerdict verdict(got, expected);
  for (std::int64_t row = 0; row < got.rows(); ++row) {
    if (promised.empty() || promised[row]) verdict.compare_row(row);
  }
  return verdict.finish();
}

}  // namespace plumb::cases
