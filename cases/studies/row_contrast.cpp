// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/row_contrast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace plumb::cases {

namespace {

constexpr const char* kRow = "row";
constexpr double kMostMixed = 0.1;

struct RowProperty {
  std::string name;
  double value = 0;
};

// The rows of an input that belong to one row of an output.
struct RowsOfInput {
  std::int64_t first = 0, count = 0;
  std::int64_t column = -1;  // element of a one-dimensional input; -1: all columns
};

// nullopt if the input has no rows for those of the output: weights, caches.
std::optional<RowsOfInput> rows_of_input(const HostTensor& input, const HostTensor& output,
                                         std::int64_t row) {
  const auto& shape = input.spec().shape;
  const auto& like = output.spec().shape;
  if (shape.empty() || like.empty() || shape.front() != like.front() || like.front() < 1) return {};
  if (input.spec().excerpt || output.spec().excerpt) return {};
  const std::int64_t place = row / std::max<std::int64_t>(output.rows() / like.front(), 1);
  if (shape.size() == 1) return RowsOfInput{0, 1, place};
  if (input.rows() == output.rows()) return RowsOfInput{row, 1};
  const std::int64_t each = input.rows() / shape.front();
  return RowsOfInput{place * each, each};
}

void add_properties_of_numbers(const HostTensor& input, const RowsOfInput& rows,
                               std::vector<RowProperty>& all) {
  double square = 0, largest = 0, smallest = INFINITY;
  std::int64_t count = 0;
  const std::int64_t begin = std::max<std::int64_t>(rows.column, 0);
  const std::int64_t end = rows.column < 0 ? input.columns() : rows.column + 1;
  for (std::int64_t r = rows.first; r < rows.first + rows.count; ++r) {
    for (std::int64_t c = begin; c < end; ++c, ++count) {
      const double magnitude = std::abs(input.value(r, c));
      square += magnitude * magnitude;
      largest = std::max(largest, magnitude);
      smallest = std::min(smallest, magnitude);
    }
  }
  if (count == 0) return;
  const std::string& name = input.spec().name;
  if (count == 1) {
    all.push_back({name + "[row]", input.value(rows.first, begin)});
    return;
  }
  // Skip zeros: a row of zeros is right under any factor, so its magnitude is no evidence.
  if (largest == 0) return;
  all.push_back({"the mean square of " + name, square / static_cast<double>(count)});
  all.push_back({"the largest magnitude in " + name, largest});
  all.push_back({"the smallest magnitude in " + name, smallest});
}

std::vector<RowProperty> properties_of(const TensorSet& tensors, const HostTensor& output,
                                       std::int64_t row) {
  std::vector<RowProperty> all;
  for (const HostTensor& input : tensors.all()) {
    const TensorSpec& spec = input.spec();
    // Bytes are codes, which mean nothing without their scales.
    if (spec.role != Role::input || spec.dtype == Dtype::u8) continue;
    const auto rows = rows_of_input(input, output, row);
    if (!rows) continue;
    const bool is_integer = spec.dtype == Dtype::i32 || spec.dtype == Dtype::i64;
    if (is_integer && rows->column < 0) continue;
    add_properties_of_numbers(input, *rows, all);
  }
  return all;
}

// Number of live rows of an output. If its rows do not correspond to the step's rows (a plan, a
// one-dimensional list), all its rows count as live.
std::int64_t live_rows(const HostTensor& output, const Problem& problem, const Step& step) {
  const auto& shape = output.spec().shape;
  const std::int64_t capacity = problem.capacity();
  if (shape.size() < 2 || capacity < 1 || shape.front() % capacity != 0) return output.rows();
  return output.rows() / capacity * step.live;
}

// The wider the gap between failing and passing values, the more convincing the property. Mixed
// values make it less convincing.
double sharpness(const SeparatingValue& one) {
  if (one.mixed > 0)
    return -static_cast<double>(one.mixed) / static_cast<double>(one.failed + one.passed);
  const double low = std::min(one.last_failing, one.first_passing);
  const double high = std::max(one.last_failing, one.first_passing);
  return low > 0 ? std::log(high / low) : high > 0 ? 1e3 : 0;
}

std::string sentence(const std::string& tensor, const std::string& property,
                     const SeparatingValue& one) {
  const auto [failing, passing] = separating_texts(one);
  if (property == kRow) {
    const auto first_rows = [](double last, const char* verb, const char* one_verb) {
      return last == 0 ? fmt::format("row 0 {}", one_verb)
                       : fmt::format("rows 0-{} {}", last, verb);
    };
    return one.fails_below ? fmt::format("{}: {}, rows from {} on pass", tensor,
                                         first_rows(one.last_failing, "fail", "fails"), passing)
                           : fmt::format("{}: rows from {} on fail, {}", tensor, failing,
                                         first_rows(one.first_passing, "pass", "passes"));
  }
  const std::string passes = one.fails_below ? "from " + passing + " on" : "up to " + passing;
  const std::string mixed =
      one.mixed == 0 ? "" : fmt::format("; of {} rows between, some fail", one.mixed);
  return fmt::format("{}: rows fail where {} is at {} {} ({} rows), and pass {} ({} rows){}",
                     tensor, property, one.fails_below ? "most" : "least", failing, one.failed,
                     passes, one.passed, mixed);
}

}  // namespace

void RowContrast::add(const Problem& problem, const Launched& launched,
                      const std::vector<TensorReport>& reports) {
  for (const TensorReport& report : reports) {
    if (!launched.tensors.contains(report.tensor)) continue;
    const HostTensor& tensor = launched.tensors.at(report.tensor);
    const bool names_rows = report.passed() || !report.wrong_rows.empty();
    if (report.sample.rows > 0 || !names_rows || report.rows_total != tensor.rows()) continue;
    add(tensor, problem, launched, report);
  }
}

// Padded rows are skipped: their inputs do not matter.
void RowContrast::add(const HostTensor& tensor, const Problem& problem, const Launched& launched,
                      const TensorReport& report) {
  const RowMask promised =
      problem.promised_rows_by_inputs(launched.step, launched.tensors, tensor.spec());
  const ColumnRanges columns = problem.promised_columns(launched.tensors, tensor.spec());
  const std::int64_t live = live_rows(tensor, problem, launched.step);
  const std::set<std::int64_t> wrong(report.wrong_rows.begin(), report.wrong_rows.end());
  Rows& rows = tensors_[report.tensor];
  for (std::int64_t row = 0; row < live; ++row) {
    const ColumnRange range = columns_of(columns, tensor, row);
    if (!is_promised(promised, row) || range.begin >= range.end) continue;
    const bool failed = wrong.contains(row);
    std::vector<RowProperty> properties = properties_of(launched.tensors, tensor, row);
    std::vector<double> values;
    for (const RowProperty& one : properties) {
      values.push_back(std::isnan(one.value) ? INFINITY : one.value);  // NaN cannot be sorted
    }
    values.push_back(static_cast<double>(row));
    if (!rows.seen.emplace(failed, values).second) continue;
    ++rows.count;
    properties.push_back({kRow, static_cast<double>(row)});
    for (const RowProperty& one : properties) {
      rows.properties[one.name].push_back({failed, one.value});
    }
  }
}

std::string RowContrast::text() const {
  std::string best;
  double sharpest = -2;
  for (const auto& [tensor, rows] : tensors_) {
    const auto hypotheses = std::ssize(rows.properties) * std::ssize(tensors_);
    for (const auto& [property, observations] : rows.properties) {
      // Bounds differ a little from row to row. Near the limit of detection some rows fail and
      // others pass, so a tenth may be mixed.
      const double most_mixed = property == kRow ? 0 : kMostMixed;
      const auto found = separating_value(observations, hypotheses, most_mixed);
      if (!found) continue;
      // The row number has the highest score, so that a property is not reported where the position
      // already separates.
      const double score = property == kRow ? 1e4 : sharpness(*found);
      if (score <= sharpest) continue;
      sharpest = score;
      best = sentence(tensor, property, *found);
      if (observations.size() < rows.count) best += "; rows of zeros are not counted";
    }
  }
  return best;
}

}  // namespace plumb::cases
