// SPDX-License-Identifier: Apache-2.0
//
// Exact verdicts on integers and on bits, and helpers that all verdicts share.
#include "cases/judge/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "cases/judge/error_pattern.h"

namespace plumb::cases {

namespace {

void check_shapes(const HostTensor& got, std::int64_t expected, const RowMask& promised) {
  if (got.elements() != expected ||
      (!promised.empty() && static_cast<std::int64_t>(promised.size()) != got.rows())) {
    throw std::invalid_argument(
        fmt::format("{}: {} elements in {} rows stored, {} elements expected, {} rows promised",
                    got.spec().name, got.elements(), got.rows(), expected, promised.size()));
  }
}

// Compares the promised rows with `equal(row, column)`; `expected(row, column)` gives values for
// the report. A fast path: if a whole row is equal, `zeros_of(row, columns)` returns its number of
// zeros. The bound of every element is 0.
TensorReport compare(const HostTensor& got, const RowMask& promised, WrongElements& wrong,
                     const ColumnRanges& columns, const auto& zeros_of, const auto& expected,
                     const auto& equal) {
  TensorReport report;
  report.tensor = got.spec().name;
  report.rows_total = got.original_rows();
  std::int64_t zeros = 0;
  for (std::int64_t r = 0; r < got.rows(); ++r) {
    if (!promised.empty() && !promised[r]) continue;
    ++report.rows_compared;
    const std::int64_t before = report.wrong_elements;
    const ColumnRange range = columns_of(columns, got, r);
    report.elements_compared += range.end - range.begin;
    if (const std::optional<std::int64_t> zeros_of_row = zeros_of(r, range)) {
      zeros += *zeros_of_row;
      continue;
    }
    for (std::int64_t c = range.begin; c < range.end; ++c) {
      const double right = expected(r, c);
      zeros += right == 0;
      if (equal(r, c)) continue;
      if (!report.worst) {
        report.worst =
            Mismatch{r, c, got.coordinates(r, c), right, got.value(r, c), 0, reference::kInfinity};
      }
      ++report.wrong_elements;
      wrong[r * got.columns() + c] = 1;
    }
    if (report.wrong_elements > before) report.wrong_rows.push_back(r);
  }
  const double compared = static_cast<double>(std::max<std::int64_t>(report.elements_compared, 1));
  report.zero_share = static_cast<double>(zeros) / compared;
  report.observability = report.elements_compared == 0 ? 0 : 1 - report.zero_share;
  report.margin = report.worst ? reference::kInfinity : 0;
  return report;
}

void number_rows(const HostTensor& got, TensorReport& report) {
  report.wrong_rows = original_rows(got, std::move(report.wrong_rows));
  if (report.worst) report.worst->row = got.original_row(report.worst->row);
}

// What a tensor is compared with: the reference, or another result of the same work, which may be
// the wrong one of the two.
enum class ComparedWith { reference, result };

// Text about the first wrong row:
// "row 3 differs in 512 of 512 places (first [3, 0]: expected 7, got 4103)", or "(first [3, 0]:
// 4103 against 7)" for two results.
std::string first_wrong_row(const TensorReport& report, const HostTensor& got,
                            const WrongElements& wrong,
                            ComparedWith other = ComparedWith::reference) {
  const std::int64_t row = report.wrong_rows.front();
  const auto begin = wrong.begin() + row * got.columns();
  const auto places = std::count(begin, begin + got.columns(), 1);
  const auto& worst = *report.worst;
  const auto without_sign_of_nan = [](double x) { return std::isnan(x) ? std::abs(x) : x; };
  const std::string values =
      other == ComparedWith::reference
          ? fmt::format("expected {}, got {}", without_sign_of_nan(worst.expected),
                        without_sign_of_nan(worst.got))
          : fmt::format("{} against {}", worst.got, worst.expected);
  return fmt::format("row {} differs in {} of {} places (first {}: {})", got.original_row(row),
                     places, got.columns(), worst.coordinates, values);
}

std::vector<double> values_of(const HostTensor& tensor) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(tensor.elements()));
  for (std::int64_t r = 0; r < tensor.rows(); ++r) {
    for (std::int64_t c = 0; c < tensor.columns(); ++c) values.push_back(tensor.value(r, c));
  }
  return values;
}

std::int64_t integer_at(const HostTensor& tensor, std::int64_t row, std::int64_t column) {
  const std::int64_t i = tensor.row_offset(row) + column;
  switch (tensor.spec().dtype) {
    case Dtype::u8: return tensor.data<std::uint8_t>()[i];
    case Dtype::i32: return tensor.data<std::int32_t>()[i];
    case Dtype::i64: return tensor.data<std::int64_t>()[i];
    default: break;
  }
  throw std::invalid_argument(fmt::format("{}: {} is not an integer type", tensor.spec().name,
                                          name_of(tensor.spec().dtype)));
}

double no_tolerance(std::int64_t) { return 0; }

std::string wrong_rows(const TensorReport& report, const HostTensor& got) {
  return rows_of(original_rows(got, report.wrong_rows), report.rows_total);
}

}  // namespace

TensorReport judge_exact(const HostTensor& got, const std::vector<std::int64_t>& expected,
                         const RowMask& promised) {
  check_shapes(got, static_cast<std::int64_t>(expected.size()), promised);
  WrongElements wrong(expected.size());
  const auto right = [&](std::int64_t r, std::int64_t c) {
    return expected[r * got.columns() + c];
  };
  TensorReport report = compare(
      got, promised, wrong, {}, [](std::int64_t, const ColumnRange&) { return std::nullopt; },
      [&](std::int64_t r, std::int64_t c) { return static_cast<double>(right(r, c)); },
      [&](std::int64_t r, std::int64_t c) { return integer_at(got, r, c) == right(r, c); });
  if (report.wrong_rows.empty()) return report;
  report.failures.push_back(fmt::format("{}: {} wrong; {}", report.tensor, wrong_rows(report, got),
                                        first_wrong_row(report, got, wrong)));
  const std::vector<double> values(expected.begin(), expected.end());
  report.pattern = error_pattern({got, values, no_tolerance, report.wrong_rows, wrong});
  number_rows(got, report);
  return report;
}

namespace {

template <class T>
std::int64_t zeros_in(const T* first, std::int64_t count) {
  return std::count(first, first + count, T{0});
}

std::int64_t zeros_in(const HostTensor& tensor, std::int64_t row, const ColumnRange& range) {
  const std::int64_t first = tensor.row_offset(row) + range.begin, count = range.end - range.begin;
  switch (tensor.spec().dtype) {
    case Dtype::u8: return zeros_in(tensor.data<std::uint8_t>() + first, count);
    case Dtype::i32: return zeros_in(tensor.data<std::int32_t>() + first, count);
    case Dtype::i64: return zeros_in(tensor.data<std::int64_t>() + first, count);
    case Dtype::f32: return zeros_in(tensor.data<float>() + first, count);
    case Dtype::bf16: break;
  }
  constexpr std::uint16_t kSign = 0x8000;
  const auto* const begin = tensor.data<std::uint16_t>() + first;
  return std::count_if(begin, begin + count, [](std::uint16_t b) { return (b & ~kSign) == 0; });
}

TensorReport compare_bits(const HostTensor& got, const HostTensor& expected,
                          const RowMask& promised, std::string_view what,
                          const ColumnRanges& columns, ComparedWith other) {
  if (got.spec().dtype != expected.spec().dtype || got.spec().shape != expected.spec().shape) {
    throw std::invalid_argument(
        fmt::format("{}: two results of different type or shape", got.spec().name));
  }
  check_shapes(got, expected.elements(), promised);
  const std::size_t size = size_of(got.spec().dtype);
  const auto address = [size](const HostTensor& tensor, std::int64_t r, std::int64_t c) {
    return tensor.bytes().data() + static_cast<std::size_t>(tensor.row_offset(r) + c) * size;
  };
  WrongElements wrong(static_cast<std::size_t>(got.elements()));
  // Fast path: most rows are equal, and one memcmp shows it.
  const auto zeros_of_equal = [&](std::int64_t r,
                                  const ColumnRange& range) -> std::optional<std::int64_t> {
    const std::size_t bytes = static_cast<std::size_t>(range.end - range.begin) * size;
    const auto *a = address(got, r, range.begin), *b = address(expected, r, range.begin);
    if (bytes > 0 && std::memcmp(a, b, bytes) != 0) return std::nullopt;
    return zeros_in(expected, r, range);
  };
  TensorReport report = compare(
      got, promised, wrong, columns, zeros_of_equal,
      [&](std::int64_t r, std::int64_t c) { return expected.value(r, c); },
      [&](std::int64_t r, std::int64_t c) {
        return std::memcmp(address(got, r, c), address(expected, r, c), size) == 0;
      });
  if (report.wrong_rows.empty()) return report;
  report.failures.push_back(fmt::format("{}: {} in {}; {}", report.tensor, what,
                                        wrong_rows(report, got),
                                        first_wrong_row(report, got, wrong, other)));
  const HostTensor seen = promised_part(got, columns);
  const std::vector<double> values = values_of(promised_part(expected, columns));
  report.pattern = error_pattern({seen, values, no_tolerance, report.wrong_rows, wrong});
  number_rows(got, report);
  return report;
}

}  // namespace

TensorReport judge_bits(const HostTensor& got, const HostTensor& other, const RowMask& promised,
                        std::string_view what, const ColumnRanges& columns) {
  return compare_bits(got, other, promised, what, columns, ComparedWith::result);
}

TensorReport judge_right_bits(const HostTensor& got, const HostTensor& right,
                              const RowMask& promised, std::string_view what,
                              const ColumnRanges& columns) {
  return compare_bits(got, right, promised, what, columns, ComparedWith::reference);
}

std::string text_of(const Sample& sample) {
  return fmt::format(
      "{} of {} rows judged; {} more have the same inputs and bits as a judged row{}",
      sample.judged, sample.rows, sample.repeated,
      sample.unjudged() > 0 ? fmt::format("; {} unjudged", sample.unjudged()) : "");
}

bool is_promised(const RowMask& promised, std::int64_t row) {
  return promised.empty() || promised[row];
}

ColumnRange columns_of(const ColumnRanges& columns, const HostTensor& tensor, std::int64_t row) {
  return columns.empty() ? ColumnRange{0, tensor.columns()} : columns[row];
}

HostTensor promised_part(HostTensor tensor, const ColumnRanges& columns) {
  const auto size = static_cast<std::int64_t>(size_of(tensor.spec().dtype));
  for (std::int64_t r = 0; r < tensor.rows(); ++r) {
    const ColumnRange range = columns_of(columns, tensor, r);
    const auto row = tensor.bytes().begin() + tensor.row_offset(r) * size;
    std::fill(row, row + range.begin * size, std::byte{0});
    std::fill(row + range.end * size, row + tensor.columns() * size, std::byte{0});
  }
  return tensor;
}

std::vector<RowGroup> groups_of(std::int64_t rows, std::int64_t rows_per_group,
                                std::string_view noun) {
  if (rows_per_group < 1) throw std::invalid_argument("an empty group of rows");
  std::vector<RowGroup> groups;
  for (std::int64_t begin = 0; begin < rows; begin += rows_per_group) {
    const std::int64_t end = std::min(rows, begin + rows_per_group);
    groups.push_back({begin, end, fmt::format("{} {}", noun, begin / rows_per_group)});
  }
  return groups;
}

std::vector<std::int64_t> original_rows(const HostTensor& tensor, std::vector<std::int64_t> rows) {
  if (!tensor.spec().excerpt) return rows;
  for (std::int64_t& row : rows) row = tensor.original_row(row);
  return rows;
}

std::string row_ranges(const std::vector<std::int64_t>& rows) {
  constexpr int kMostRanges = 6;
  std::string text;
  int ranges = 0;
  for (std::size_t i = 0; i < rows.size(); ++ranges) {
    if (ranges == kMostRanges) return text + ", …";
    std::size_t last = i;
    while (last + 1 < rows.size() && rows[last + 1] == rows[last] + 1) ++last;
    text += i > 0 ? ", " : "";
    text += last == i ? fmt::format("{}", rows[i]) : fmt::format("{}-{}", rows[i], rows[last]);
    i = last + 1;
  }
  return text;
}

std::string rows_of(const std::vector<std::int64_t>& rows, std::int64_t total) {
  return fmt::format("{} of {} rows ({} {})", rows.size(), total, rows.size() == 1 ? "row" : "rows",
                     row_ranges(rows));
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace plumb::cases
