// SPDX-License-Identifier: Apache-2.0
//
// The verdict on a floating-point tensor. Every comparison is written so that a NaN fails.
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

// Measurements of one row of the result.
struct RowResult {
  RowModel model;
  bool measured = true;  // false: norm and direction are meaningless (an element overflowed)
  // L2 norm of the result, and of its component orthogonal to the expected row. If the result
  // points in the opposite direction, `across` is at least the norm of the expected row.
  double norm = 0, across = 0;
  double mean_error = 0;  // mean of sign(value) * (result - value)
  std::int64_t compared = 0, zeros = 0, observable = 0;
  // Elements beyond their bound; those of them with misplaced non-finite values.
  std::int64_t wrong = 0, misplaced = 0;
  double worst_ratio = 0;
  std::int64_t worst_column = 0;

  bool norm_passed() const { return !measured || std::abs(norm - model.norm) <= model.norm_limit; }
  bool direction_passed() const { return !measured || across <= model.direction_limit; }
  bool passed() const { return wrong == 0 && norm_passed() && direction_passed(); }
};

struct Element {
  double expected = 0, got = 0, bound = 0, ratio = 0;
  bool misplaced = false;   // only one of the two is finite, or NaN, +inf and -inf are confused
  bool overflowed = false;  // finite in the reference, rightly infinite in the output format
};

// Infinity is right if the expected value plus its bound exceeds the format's largest finite value.
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

// Measures norm, direction and mean error of a row in its promised columns. The other columns add
// nothing to row.model either, because the estimate is zero there.
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
  // A result in the opposite direction counts as at least as wrong as zero.
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

// Compares the promised rows on all cores.
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

// Text for the rows that fulfil a condition: "4 of 7 rows (rows 3-6)".
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
    // With misplaced elements the worst ratio is infinite and is not printed here.
    const std::string worst =
        misplaced > 0
            ? std::string()
            : fmt::format("; worst {}: expected {:.6g}, got {:.6g}, bound {:.2g} (ratio {:.3g})",
                          report.worst->coordinates, report.worst->expected, report.worst->got,
                          report.worst->bound, report.worst->ratio);
    report.failures.push_back(fmt::format(
        "{}: {} beyond {} bound in {}{}", report.tensor, counted(beyond, "element"),
        beyond == 1 ? "its" : "their",
        named_where(got, rows, [](const RowResult& row) { return row.wrong > row.misplaced; }),
        worst));
  }
}

// Number of digits that distinguishes a wrong norm from the expected one.
int digits_of(const RowResult& row) {
  const double least = std::max(row.model.norm_limit, 1e-12 * row.model.norm);
  const double share = row.model.norm / least;
  const double digits = std::isfinite(share) && share > 0 ? std::log10(share) : 0;
  return std::clamp(static_cast<int>(std::ceil(digits)) + 2, 4, 15);
}

// Norms and directions are named for rows whose elements are all within their bounds: an element
// beyond its bound has said that the row is wrong, and usually it makes the others wrong too.
void report_rows(const HostTensor& got, const std::vector<RowResult>& rows, TensorReport& report) {
  const auto norm =
      rows_where(rows, [](const RowResult& row) { return row.wrong == 0 && !row.norm_passed(); });
  if (!norm.empty()) {
    const RowResult& first = rows[norm.front()];
    report.failures.push_back(fmt::format(
        "{}: L2 norm wrong in {}; row {}: {:.{}g}, expected {:.{}g} ± {:.2g}", report.tensor,
        rows_of(original_rows(got, norm), report.rows_total), got.original_row(norm.front()),
        first.norm, digits_of(first), first.model.norm, digits_of(first), first.model.norm_limit));
  }
  const auto turned = rows_where(
      rows, [](const RowResult& row) { return row.wrong == 0 && !row.direction_passed(); });
  if (!turned.empty()) {
    const RowResult& first = rows[turned.front()];
    report.failures.push_back(fmt::format(
        "{}: direction wrong in {}; row {}: the component orthogonal to the expected row is {:.4g} "
        "(limit {:.4g}, row norm {:.4g})",
        report.tensor, rows_of(original_rows(got, turned), report.rows_total),
        got.original_row(turned.front()), first.across, first.model.direction_limit,
        first.model.norm));
  }
}

// A group of an excerpt consists of rows that are not adjacent, so its name gives their range.
std::string name_of(const RowGroup& group, const HostTensor& got) {
  if (!got.spec().excerpt || group.begin == group.end) return group.name;
  return fmt::format("{} judged rows of {}-{}", group.end - group.begin,
                     got.original_row(group.begin), got.original_row(group.end - 1));
}

// Recognises repeated rows. Padded rows often have equal inputs and therefore equal errors. Added
// up, a thousand equal errors would look like a bias, so each is counted once.
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

// Adds one line for the most biased row group, or for the tensor.
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
      "{}: biased: magnitudes in {} are {:.2g} % too {} on average ({:.1f} standard errors){}",
      report.tensor, name_of(*where, got), 100 * std::abs(worst.relative),
      worst.relative < 0 ? "small" : "large", worst.sigmas,
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
  // The bias test runs only if the rest passed: an element beyond its bound would dominate the
  // mean.
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
