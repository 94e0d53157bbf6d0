// SPDX-License-Identifier: Apache-2.0
//
// A view of the wrong rows of a stored tensor, for the functions that look for patterns.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/judge/error_pattern.h"

namespace plumb::cases {

// Share of rows, or of elements, that must have a property before it is reported as a pattern.
inline constexpr double kNearlyAll = 0.9;

inline bool is_float(Dtype dtype) { return dtype == Dtype::bf16 || dtype == Dtype::f32; }

// All wrong rows. Patterns are looked for in their columns [begin, end) only.
struct WrongRows {
  const Evidence& evidence;
  std::vector<std::int64_t> rows;
  std::int64_t begin, end;

  std::int64_t element(std::int64_t row, std::int64_t column) const {
    return row * evidence.got.columns() + column;
  }
  double got(std::int64_t row, std::int64_t column) const {
    return evidence.got.value(row, column);
  }
  double expected(std::int64_t row, std::int64_t column) const {
    return evidence.expected[element(row, column)];
  }
  double tolerance(std::int64_t row, std::int64_t column) const {
    return evidence.tolerance(element(row, column));
  }
  bool wrong(std::int64_t row, std::int64_t column) const {
    return evidence.wrong[element(row, column)] != 0;
  }
  std::int64_t number(std::int64_t row) const { return evidence.got.original_row(row); }
  const Clues* clues() const { return evidence.got.spec().clues.get(); }
  std::string subject() const {
    return begin == 0 ? "each wrong row" : fmt::format("each wrong row from column {} on", begin);
  }
};

inline bool equal(double a, double b, double tolerance) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance;
}

template <class Condition>
bool all_columns(const WrongRows& view, const Condition& condition) {
  for (std::int64_t c = view.begin; c < view.end; ++c) {
    if (!condition(c)) return false;
  }
  return true;
}

template <class Condition>
bool nearly_all_rows(const WrongRows& view, const Condition& condition) {
  const auto explained = std::count_if(view.rows.begin(), view.rows.end(), condition);
  return static_cast<double>(explained) >= kNearlyAll * static_cast<double>(view.rows.size());
}

// States that the wrong rows meet `condition`, which `what` names ("is zero"): "each wrong row is
// zero" if nearly all of them meet it in every column, else "every wrong element is zero" if nearly
// all of them meet it in their wrong elements. Else nullopt.
template <class Condition>
std::optional<std::string> all_are(const WrongRows& view, std::string_view what,
                                   const Condition& condition) {
  std::int64_t wrong = 0;
  const auto whole_row = [&](std::int64_t r) {
    return all_columns(view, [&](std::int64_t c) { return condition(r, c); });
  };
  const auto wrong_elements = [&](std::int64_t r) {
    return all_columns(view, [&](std::int64_t c) {
      wrong += view.wrong(r, c);
      return !view.wrong(r, c) || condition(r, c);
    });
  };
  if (nearly_all_rows(view, whole_row)) return fmt::format("{} {}", view.subject(), what);
  if (nearly_all_rows(view, wrong_elements) && wrong > 0) {
    return fmt::format("every wrong element {}", what);
  }
  return {};
}

}  // namespace plumb::cases
