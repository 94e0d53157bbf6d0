// SPDX-License-Identifier: Apache-2.0
//
// The verdict on a floating-point tensor. Every comparison is written so that NaN fails.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <tuple>

#include "cases/judge/bias.h"
#include "cases/judge/error_pattern.h"
#include "cases/judge/judge.h"
#include "cases/judge/row_model.h"
#include "reference/rounding.h"

namespace plumb::cases {

namespace {

using reference::Estimate;

// One row of the result, compared and measured.
struct RowResult {
  RowModel model;
  bool measured = true;         // norm and direction mean something
  double norm = 0, across = 0;  // length of the result, and of its part across the value
  double mean_error = 0;        // of sign(value) * (result - value)
  std::int64_t compared = 0, zeros = 0, observable = 0;
  std::int64_t wrong = 0, misplaced = 0;  // elements beyond their bound; of those, non-finite
  double worst_ratio = 0;
  std::int64_t worst_column = 0;

  bool norm_passed() const { return !measured || std::abs(norm - model.norm) <= model.norm_limit; }
  bool direction_passed() const { return !measured || across <= model.direction_limit; }
  bool passed() const { return wrong == 0 && norm_passed() && direction_passed(); }
};

struct Element {
  double expected = 0, got = 0, bound = 0, ratio = 0;
  bool misplaced = false;  // one is finite and the other is not, or NaN, +inf and -inf are confused
  bool overflowed = false;  // finite in the reference, honestly infinite in the format
};

// A value too large for the format is infinity; one as near to the limit as its bound is either.
bool may_overflow(const Estimate& estimate, double expected, double got, double bound) {
  const double largest = reference::largest_finite(estimate.output);
  return std::isinf(got) && std::signbit(got) == std::signbit(expected) &&
         std::abs(expected) + bound > largest;
}

bool same_kind(double expected, double got) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (std::isinf(expected) || std::isinf(got)) return expected == got;
  return true;
}

Element compare(const HostTensor& got, const Estimate& estimate, std::int64_t row,
                std::int64_t column) {
  const std::int64_t i = row * estimate.columns + column;
  Element element{.expected = estimate.centre(i), .got = got.value(row, column)};
  if (!std::isfinite(element.expected)) {
    element.misplaced = !same_kind(element.expected, element.got);
    if (element.misplaced) element.ratio = reference::kInfinity;
    return element;
  }
  element.bound = estimate.bound(i);
  element.overflowed = may_overflow(estimate, element.expected, element.got, element.bound);
  if (element.overflowed) return element;
  element.misplaced = !std::isfinite(element.got);
  element.ratio = std::abs(element.got - element.expected) / element.bound;
  if (std::isnan(element.ratio)) element.ratio = reference::kInfinity;
  return element;
}

std::vector<double> centres(const Estimate& estimate) {
  std::vector<double> centres = estimate.value;
  for (std::int64_t i = 0; i < std::ssize(centres); ++i) centres[i] = estimate.centre(i);
  return centres;
}

void compare_row(const HostTensor& got, const Estimate& estimate, std::int64_t r,
                 const ColumnRange& range, RowResult& row, WrongElements& wrong) {
  row.compared = range.end - range.begin;
  for (std::int64_t c = range.begin; c < range.end; ++c) {
    const Element element = compare(got, estimate, r, c);
    row.zeros += element.expected == 0;
    row.observable += std::abs(element.expected) > element.bound;
    if (element.overflowed) row.measured = false;
    if (element.ratio > row.worst_ratio) {
      row.worst_ratio = element.ratio;
      row.worst_column = c;
    }
    if (element.ratio <= 1) continue;
    ++row.wrong;
    row.misplaced += element.misplaced;
    wrong[r * estimate.columns + c] = 1;
  }
}

// A column that is not promised adds nothing: the estimate is zero there.
void measure_row(const HostTensor& got, const Estimate& estimate, std::int64_t r,
                 const ColumnRange& range, RowResult& row) {
  const double* y = &estimate.value[r * estimate.columns];
  double product = 0, signed_error = 0;
  for (std::int64_t c = range.begin; c < range.end; ++c) {
    if (!std::isfinite(y[c])) continue;
    const double x = got.value(r, c);
    product += x * y[c];
    signed_error += y[c] > 0 ? x - y[c] : y[c] < 0 ? y[c] - x : 0;
  }
  const double norm = row.model.norm;
  const double scale = norm > 0 ? product / (norm * norm) : 0;
  double square = 0, across = 0;
  for (std::int64_t c = range.begin; c < range.end; ++c) {
    if (!std::isfinite(y[c])) continue;
    const double x = got.value(r, c);
    square += x * x;
    across += (x - scale * y[c]) * (x - scale * y[c]);
  }
  row.norm = std::sqrt(square);
  row.mean_error = signed_error / static_cast<double>(estimate.columns);
  // What points away from the value is at least as far from it as zero is.
  row.across = scale < 0 ? std::max(std::sqrt(across), norm) : std::sqrt(across);
}

void check_shapes(const HostTensor& got, const Estimate& estimate, const RowMask& promised) {
  const auto rows = static_cast<std::size_t>(estimate.rows);
  if (got.rows() != estimate.rows || got.columns() != estimate.columns ||
      (!promised.empty() && promised.size() != rows) || estimate.row_mean_sigma.size() != rows ||
      estimate.row_systematic.size() != rows || estimate.row_concentration.size() != rows) {
    throw std::invalid_argument(fmt::format("{}: {} x {} stored, {} x {} expected, {} promised",
                                            got.spec().name, got.rows(), got.columns(),
                                            estimate.rows, estimate.columns, promised.size()));
  }
}

// Rows that are compared, judged on all cores.
std::vector<RowResult> judge_rows(const HostTensor& got, const Estimate& estimate,
                                  const RowMask& promised, const ColumnRanges& columns,
                                  WrongElements& wrong) {
  std::vector<RowResult> rows(static_cast<std::size_t>(estimate.rows));
  constexpr std::int64_t kElementsWorthAThread = 1 << 14;
  const std::int64_t piece =
      kElementsWorthAThread / std::max<std::int64_t>(estimate.columns, 1) + 1;
  reference::parallel_for(estimate.rows, piece, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      if (!is_promised(promised, r)) continue;
      rows[r].model = model_row(estimate, r);
      const ColumnRange range = columns_of(columns, got, r);
      compare_row(got, estimate, r, range, rows[r], wrong);
      measure_row(got, estimate, r, range, rows[r]);
    }
  });
  return rows;
}

void count(const std::vector<RowResult>& rows, const Estimate& estimate, const RowMask& promised,
           TensorReport& report) {
  std::int64_t zeros = 0, observable = 0;
  for (std::int64_t r = 0; r < estimate.rows; ++r) {
    if (!is_promised(promised, r)) continue;
    ++report.rows_compared;
    report.elements_compared += rows[r].compared;
    zeros += rows[r].zeros;
    observable += rows[r].observable;
    report.wrong_elements += rows[r].wrong;
    if (!rows[r].passed()) report.wrong_rows.push_back(r);
  }
  const double compared = static_cast<double>(std::max<std::int64_t>(report.elements_compared, 1));
  report.zero_share = static_cast<double>(zeros) / compared;
  report.observability = static_cast<double>(observable) / compared;
}

void find_worst(const HostTensor& got, const std::vector<RowResult>& rows, const Estimate& estimate,
                TensorReport& report) {
  for (std::int64_t r = 0; r < estimate.rows; ++r) {
    if (!(rows[r].worst_ratio > report.margin)) continue;
    report.margin = rows[r].worst_ratio;
    const std::int64_t c = rows[r].worst_column;
    const Element element = compare(got, estimate, r, c);
    report.worst = Mismatch{got.original_row(r), c,           got.coordinates(r, c),
                            element.expected,    element.got, element.bound,
                            element.ratio};
  }
}

std::vector<std::int64_t> rows_where(const std::vector<RowResult>& rows, const auto& condition) {
  std::vector<std::int64_t> found;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (condition(rows[r])) found.push_back(static_cast<std::int64_t>(r));
  }
  return found;
}

// "rows 3-6 of 7"
std::string named_where(const HostTensor& got, const std::vector<RowResult>& rows,
                        const auto& condition) {
  return rows_of(original_rows(got, rows_where(rows, condition)), got.original_rows());
}

void report_elements(const HostTensor& got, const std::vector<RowResult>& rows,
                     TensorReport& report) {
  std::int64_t misplaced = 0;
  for (const RowResult& row : rows) misplaced += row.misplaced;
  if (misplaced > 0) {
    report.failures.push_back(
        fmt::format("{}: {} in {}; worst {}: expected {}, got {}", report.tensor,
                    counted(misplaced, "non-finite or missing non-finite element"),
                    named_where(got, rows, [](const RowResult& row) { return row.misplaced > 0; }),
                    report.worst->coordinates, report.worst->expected, report.worst->got));
  }
  const std::int64_t beyond = report.wrong_elements - misplaced;
  if (beyond > 0) {
    // The worst of these has a finite ratio only if nothing is misplaced.
    const std::string worst =
        misplaced > 0
            ? std::string()
            : fmt::format("; worst {}: expected {:.6g}, got {:.6g}, bound {:.2g} (ratio {:.3g})",
                          report.worst->coordinates, report.worst->expected, report.worst->got,
                          report.worst->bound, report.worst->ratio);
    report.failures.push_back(fmt::format(
        "{}: {} in {} beyond {} bound{}", report.tensor, counted(beyond, "element"),
        named_where(got, rows, [](const RowResult& row) { return row.wrong > row.misplaced; }),
        beyond == 1 ? "its" : "their", worst));
  }
}

// As many as tell a wrong norm from the expected one.
int digits_of(const RowResult& row) {
  const double least = std::max(row.model.norm_limit, 1e-12 * row.model.norm);
  const double share = row.model.norm / least;
  const double digits = std::isfinite(share) && share > 0 ? std::log10(share) : 0;
  return std::clamp(static_cast<int>(std::ceil(digits)) + 2, 4, 15);
}

void report_rows(const HostTensor& got, const std::vector<RowResult>& rows, TensorReport& report) {
  const auto norm = rows_where(rows, [](const RowResult& row) { return !row.norm_passed(); });
  if (!norm.empty()) {
    const RowResult& first = rows[norm.front()];
    report.failures.push_back(fmt::format(
        "{}: norm of {} wrong; row {}: L2 norm {:.{}g}, expected {:.{}g} ± {:.2g}", report.tensor,
        rows_of(original_rows(got, norm), report.rows_total), got.original_row(norm.front()),
        first.norm, digits_of(first), first.model.norm, digits_of(first), first.model.norm_limit));
  }
  const auto turned =
      rows_where(rows, [](const RowResult& row) { return !row.direction_passed(); });
  if (!turned.empty()) {
    const RowResult& first = rows[turned.front()];
    report.failures.push_back(fmt::format(
        "{}: direction of {} wrong; row {}: the component orthogonal to the expected row "
        "is {:.4g} (limit {:.4g}, norm of the row {:.4g})",
        report.tensor, rows_of(original_rows(got, turned), report.rows_total),
        got.original_row(turned.front()), first.across, first.model.direction_limit,
        first.model.norm));
  }
}

// An excerpt's groups are made of rows that do not lie side by side.
std::string name_of(const RowGroup& group, const HostTensor& got) {
  if (!got.spec().excerpt || group.begin == group.end) return group.name;
  return fmt::format("{} judged rows of {}-{}", group.end - group.begin,
                     got.original_row(group.begin), got.original_row(group.end - 1));
}

// Of rows of padding, whose inputs are often the same, a thousand say no more than one: where the
// value and the result are those of an earlier row, so is the error, which a sum would take for a
// bias.
class Repeats {
 public:
  bool is_one(const RowResult& row) {
    const bool first =
        seen_.emplace(row.mean_error, row.norm, row.across, row.model.norm, row.worst_ratio).second;
    return !first;
  }

 private:
  std::set<std::tuple<double, double, double, double, double>> seen_;
};

// The most biased of the groups and the tensor, in one line.
void report_bias(const HostTensor& got, const std::vector<RowResult>& rows,
                 const Estimate& estimate, const RowMask& promised, std::vector<RowGroup> groups,
                 TensorReport& report) {
  groups.push_back({0, estimate.rows, "the tensor"});
  Bias worst;
  const RowGroup* where = nullptr;
  std::int64_t failed = 0;
  for (const RowGroup& group : groups) {
    BiasTest test(estimate.output, estimate.columns);
    Repeats repeats;
    for (std::int64_t r = group.begin; r < group.end; ++r) {
      if (!is_promised(promised, r) || !rows[r].measured || repeats.is_one(rows[r])) continue;
      test.add(rows[r].model, rows[r].mean_error);
    }
    const Bias bias = test.result();
    if (bias.passed()) continue;
    ++failed;
    if (where != nullptr && !(bias.sigmas > worst.sigmas)) continue;
    worst = bias;
    where = &group;
  }
  if (where == nullptr) return;
  report.failures.push_back(fmt::format(
      "{}: mean error of {} is {:.1f} standard errors away from zero ({:.2g} % {} zero){}",
      report.tensor, name_of(*where, got), worst.sigmas, 100 * std::abs(worst.relative),
      worst.relative < 0 ? "towards" : "away from",
      failed > 1 ? fmt::format("; {} groups of rows are biased", failed) : ""));
}

}  // namespace

TensorReport judge_floats(const HostTensor& got, const Estimate& expected, const RowMask& promised,
                          const std::vector<RowGroup>& groups, const ColumnRanges& columns) {
  check_shapes(got, expected, promised);
  TensorReport report;
  report.tensor = got.spec().name;
  report.rows_total = got.original_rows();
  WrongElements wrong(expected.value.size());
  const std::vector<RowResult> rows = judge_rows(got, expected, promised, columns, wrong);
  count(rows, expected, promised, report);
  find_worst(got, rows, expected, report);
  report_elements(got, rows, report);
  report_rows(got, rows, report);
  // An element beyond its bound would swamp the mean and has decided already.
  if (report.passed()) report_bias(got, rows, expected, promised, groups, report);
  if (!report.wrong_rows.empty()) {
    const auto tolerance = [&](std::int64_t i) { return expected.bound(i); };
    const HostTensor seen = promised_part(got, columns);
    const std::vector<double> right = centres(expected);
    report.pattern = error_pattern({seen, right, tolerance, report.wrong_rows, wrong});
    report.wrong_rows = original_rows(got, std::move(report.wrong_rows));
  }
  return report;
}

}  // namespace plumb::cases
