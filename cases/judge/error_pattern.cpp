// SPDX-License-Identifier: Apache-2.0
#include "cases/judge/error_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "cases/judge/unwritten.h"
#include "cases/judge/wrong_rows.h"

namespace plumb::cases {

namespace {

// Number of wrong rows examined: enough to establish a pattern, few enough to compare each of them
// with every other row.
constexpr std::size_t kMostRows = 64;

// ---- values of the wrong elements ----

std::optional<std::string> nan(const WrongRows& view) {
  return all_are(view, "is NaN",
                 [&](std::int64_t r, std::int64_t c) { return std::isnan(view.got(r, c)); });
}

std::optional<std::string> one_for_another(const WrongRows& view) {
  std::optional<std::pair<double, double>> seen;
  std::int64_t wrong = 0;
  for (const std::int64_t r : view.rows) {
    for (std::int64_t c = view.begin; c < view.end; ++c) {
      if (!view.wrong(r, c)) continue;
      const std::pair here(view.expected(r, c), view.got(r, c));
      if (seen && *seen != here) return {};
      seen = here;
      ++wrong;
    }
  }
  // A code may be wrong because of its scale, although both values are equal.
  if (wrong < 2 || seen->first == seen->second) return {};
  return fmt::format("every wrong element is {} where {} is expected", seen->second, seen->first);
}

std::optional<std::string> zero(const WrongRows& view) {
  return all_are(view, "is zero",
                 [&](std::int64_t r, std::int64_t c) { return view.got(r, c) == 0; });
}

// Elements of bf16 that are the neighbour of the expected value on the side of zero. So many of
// them that rounding in both directions is out of the question.
std::optional<std::string> cut_off(const WrongRows& view) {
  constexpr std::int64_t kLeastElements = 16;
  constexpr int kMantissaBits = 7;
  if (view.evidence.got.spec().dtype != Dtype::bf16) return {};
  std::int64_t wrong = 0;
  for (const std::int64_t r : view.rows) {
    for (std::int64_t c = view.begin; c < view.end; ++c) wrong += view.wrong(r, c);
  }
  if (wrong < kLeastElements) return {};
  return all_are(
      view, "is cut off towards zero instead of rounded", [&](std::int64_t r, std::int64_t c) {
        const double expected = view.expected(r, c);
        const double lost = expected > 0 ? expected - view.got(r, c) : view.got(r, c) - expected;
        return expected != 0 && lost > 0 &&
               lost < std::ldexp(1.0, std::ilogb(expected) - kMantissaBits);
      });
}

// ---- wrong rows that hold the values of other rows ----

// The first row other than `r` whose expected values equal value(c) of each column.
template <class Value>
std::optional<std::int64_t> other_row_with(const WrongRows& view, std::int64_t r,
                                           const Value& value) {
  for (std::int64_t s = 0; s < view.evidence.got.rows(); ++s) {
    const bool same = s != r && all_columns(view, [&](std::int64_t c) {
                        return equal(value(c), view.expected(s, c), view.tolerance(s, c));
                      });
    if (same) return s;
  }
  return {};
}

// Whether so many wrong rows may hold another row's values by accident: rows of few possible
// values, such as one scale, have equals among the expected rows.
bool is_accident(const WrongRows& view, std::size_t wrong_rows) {
  constexpr double kLeastLikely = 0.02;
  const auto rows = std::min<std::int64_t>(view.evidence.got.rows(), kMostRows);
  std::int64_t with_equal = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    with_equal +=
        other_row_with(view, r, [&](std::int64_t c) { return view.expected(r, c); }).has_value();
  }
  const double share = static_cast<double>(with_equal) / static_cast<double>(rows);
  return std::pow(share, static_cast<double>(wrong_rows)) > kLeastLikely;
}

std::optional<std::string> other_row(const WrongRows& view) {
  std::map<std::int64_t, std::int64_t> sources;
  const bool found = nearly_all_rows(view, [&](std::int64_t r) {
    const auto source = other_row_with(view, r, [&](std::int64_t c) { return view.got(r, c); });
    if (source) sources[r] = *source;
    return source.has_value();
  });
  if (!found || is_accident(view, sources.size())) return {};
  const auto [first, source] = *sources.begin();
  const std::int64_t distance = source - first;
  const bool shifted = std::all_of(sources.begin(), sources.end(), [&](const auto& pair) {
    return pair.second - pair.first == distance;
  });
  // Rows of an excerpt are not adjacent in the tensor, so a fixed distance means nothing.
  if (shifted && sources.size() > 1 && !view.evidence.got.spec().excerpt) {
    return fmt::format("{}: row r holds the values of row r {} {}", view.subject(),
                       distance < 0 ? "-" : "+", std::abs(distance));
  }
  std::string text;
  for (const auto& [row, from] : sources) {
    if (text.size() > 100) return text + ", …";
    text += fmt::format("{}row {} holds the values of row {}", text.empty() ? "" : ", ",
                        view.number(row), view.number(from));
  }
  return text;
}

// ---- wrong values as a function of the right ones ----

double factor_of(const WrongRows& view, std::int64_t r) {
  double product = 0, square = 0;
  for (std::int64_t c = view.begin; c < view.end; ++c) {
    product += view.got(r, c) * view.expected(r, c);
    square += view.expected(r, c) * view.expected(r, c);
  }
  return product / square;
}

bool is_multiple(const WrongRows& view, std::int64_t r, double factor) {
  return all_columns(view, [&](std::int64_t c) {
    return equal(view.got(r, c), factor * view.expected(r, c),
                 std::max(1.0, std::abs(factor)) * view.tolerance(r, c));
  });
}

// Prints enough digits to distinguish the factor from 1: 1.0004.
std::string factor_text(double factor) {
  const double away = std::max(std::abs(factor - 1), 1e-12);
  return fmt::format("{:.{}g}", factor,
                     std::max(4, 1 + static_cast<int>(std::ceil(-std::log10(away)))));
}

std::optional<std::string> factor(const WrongRows& view) {
  if (!is_float(view.evidence.got.spec().dtype)) return {};
  std::vector<double> factors;
  for (const std::int64_t r : view.rows) {
    factors.push_back(factor_of(view, r));
    if (!std::isfinite(factors.back())) return {};
  }
  std::nth_element(factors.begin(), factors.begin() + factors.size() / 2, factors.end());
  const double median = factors[factors.size() / 2];
  // Up to two rows of up to two columns are easily a multiple of the expected values by chance.
  const bool common =
      nearly_all_rows(view, [&](std::int64_t r) { return is_multiple(view, r, median); });
  if (common && (view.rows.size() > 2 || view.end - view.begin > 2)) {
    return fmt::format("{} is {} × the expected row", view.subject(), factor_text(median));
  }
  if (view.end - view.begin <= 2) return {};
  const bool own = nearly_all_rows(
      view, [&](std::int64_t r) { return is_multiple(view, r, factor_of(view, r)); });
  if (!own) return {};
  const auto [least, most] = std::minmax_element(factors.begin(), factors.end());
  return fmt::format("{} is a multiple of the expected row, with factors from {:.4g} to {:.4g}",
                     view.subject(), *least, *most);
}

// The difference got - expected, if it is the same for all wrong elements of a row.
std::optional<std::int64_t> offset_of(const WrongRows& view, std::int64_t r) {
  std::optional<double> offset;
  for (std::int64_t c = view.begin; c < view.end; ++c) {
    if (!view.wrong(r, c)) continue;
    const double difference = view.got(r, c) - view.expected(r, c);
    if (offset && *offset != difference) return {};
    offset = difference;
  }
  if (!offset || !(std::abs(*offset) < 0x1p62)) return {};
  return static_cast<std::int64_t>(*offset);
}

std::optional<std::string> named_offset(const WrongRows& view) {
  const HostTensor& got = view.evidence.got;
  if (is_float(got.spec().dtype) || view.clues() == nullptr) return {};
  for (const HostTensor& input : view.clues()->offsets) {
    if (input.elements() < got.original_rows() || input.columns() != input.elements()) continue;
    const auto of_row = [&](std::int64_t r) {
      return static_cast<std::int64_t>(input.value(0, view.number(r)));
    };
    for (const int sign : {1, -1}) {
      const bool fits = nearly_all_rows(view, [&](std::int64_t r) {
        const auto offset = offset_of(view, r);
        return offset && *offset == sign * of_row(r);
      });
      if (!fits) continue;
      const std::int64_t first = view.rows.front();
      return fmt::format("every wrong element is too {} by {}[row] ({} in row {})",
                         sign > 0 ? "large" : "small", input.spec().name, of_row(first),
                         view.number(first));
    }
  }
  return {};
}

std::optional<std::string> offset(const WrongRows& view) {
  if (is_float(view.evidence.got.spec().dtype)) return {};
  std::map<std::int64_t, std::int64_t> offsets;
  std::int64_t wrong = 0;
  for (const std::int64_t r : view.rows) {
    if (const auto found = offset_of(view, r)) offsets[r] = *found;
    for (std::int64_t c = view.begin; c < view.end; ++c) wrong += view.wrong(r, c);
  }
  // A row with one wrong element always has a single difference, so require two on average.
  const bool all = nearly_all_rows(view, [&](std::int64_t r) { return offsets.contains(r); });
  if (!all || wrong < 2 * static_cast<std::int64_t>(view.rows.size())) return {};
  const auto [row, first] = *offsets.begin();
  const bool same =
      std::all_of(offsets.begin(), offsets.end(),
                  [&, value = first](const auto& pair) { return pair.second == value; });
  if (same) {
    return fmt::format("every wrong element is too {} by {}", first > 0 ? "large" : "small",
                       std::abs(first));
  }
  return fmt::format(
      "each wrong row is off by a constant that depends on the row ({} in row {}, {} in row {})",
      first, view.number(row), offsets.rbegin()->second, view.number(offsets.rbegin()->first));
}

std::vector<double> sorted_row(const WrongRows& view, std::int64_t r, bool got) {
  std::vector<double> values;
  for (std::int64_t c = view.begin; c < view.end; ++c) {
    values.push_back(got ? view.got(r, c) : view.expected(r, c));
  }
  std::sort(values.begin(), values.end());
  return values;
}

std::optional<std::string> other_order(const WrongRows& view) {
  if (is_float(view.evidence.got.spec().dtype)) return {};
  const bool permuted = nearly_all_rows(view, [&](std::int64_t r) {
    return sorted_row(view, r, true) == sorted_row(view, r, false);
  });
  if (!permuted) return {};
  return fmt::format("{} holds the right values in another order", view.subject());
}

std::optional<std::string> duplicates(const WrongRows& view) {
  if (is_float(view.evidence.got.spec().dtype)) return {};
  double example = 0;
  std::int64_t where = 0;
  // Negative values are padding and may repeat.
  const auto repeated = [&](std::int64_t r, bool got) {
    const std::vector<double> values = sorted_row(view, r, got);
    const auto begin = std::lower_bound(values.begin(), values.end(), 0.0);
    const auto found = std::adjacent_find(begin, values.end());
    if (found == values.end()) return false;
    example = *found;
    where = r;
    return true;
  };
  const bool fits = nearly_all_rows(
      view, [&](std::int64_t r) { return !repeated(r, false) && repeated(r, true); });
  if (!fits) return {};
  return fmt::format("{} holds a value twice, although all expected values differ (row {}: {})",
                     view.subject(), view.number(where), example);
}

// ---- places of the wrong elements ----

// First column of a wrong suffix: the first wrong column of any row, if in nearly all rows nearly
// all elements from it on are wrong. 0 if there is none.
std::int64_t lost_columns(const WrongRows& view) {
  std::int64_t first = view.end;
  for (const std::int64_t r : view.rows) {
    for (std::int64_t c = 0; c < first; ++c) {
      if (view.wrong(r, c)) first = c;
    }
  }
  const bool suffix = nearly_all_rows(view, [&](std::int64_t r) {
    std::int64_t wrong = 0;
    for (std::int64_t c = first; c < view.end; ++c) wrong += view.wrong(r, c);
    return wrong > 0 &&
           static_cast<double>(wrong) >= kNearlyAll * static_cast<double>(view.end - first);
  });
  return suffix && first < view.end ? first : 0;
}

std::string lost_rows(const Evidence& evidence) {
  const auto& rows = evidence.wrong_rows;
  const std::int64_t first = rows.front();
  const bool suffix = !evidence.got.spec().excerpt && first > 0 && rows.size() > 1 &&
                      rows.back() == evidence.got.rows() - 1 &&
                      rows.back() - first + 1 == static_cast<std::int64_t>(rows.size());
  return suffix ? fmt::format("all rows from {} on are wrong, none before", first) : "";
}

using Pattern = std::optional<std::string> (*)(const WrongRows&);

template <std::size_t count>
std::string first_of(const Pattern (&patterns)[count], const WrongRows& view) {
  for (const Pattern pattern : patterns) {
    if (const auto text = pattern(view)) return *text;
  }
  return {};
}

// Most specific pattern first.
constexpr Pattern kOfElements[] = {never_written, nan,          one_for_another, as_before,
                                   zero,          named_offset, offset,          cut_off};
constexpr Pattern kOfRows[] = {earlier_step, other_row, factor, other_order, duplicates};

// Looks for a pattern in whole rows first, then in their wrong suffix only.
std::string describe(WrongRows view) {
  const std::int64_t lost = lost_columns(view);
  const std::string columns =
      lost > 0 ? fmt::format("only columns from {} on are wrong", lost) : "";
  std::string text = first_of(kOfElements, view);
  if (!text.empty()) return columns.empty() ? text : text + "; " + columns;
  text = first_of(kOfRows, view);
  if (!text.empty()) return text;
  const std::string part = partly_written(view).value_or("");
  if (lost == 0 || !part.empty()) return columns.empty() ? part : part + "; " + columns;
  view.begin = lost;
  text = first_of(kOfRows, view);
  return text.empty() ? columns : text;
}

}  // namespace

std::string error_pattern(const Evidence& evidence) {
  if (evidence.wrong_rows.empty() || evidence.got.columns() == 0) return {};
  const std::size_t looked_at = std::min(evidence.wrong_rows.size(), kMostRows);
  const auto first = evidence.wrong_rows.begin();
  const std::string text =
      describe({evidence, {first, first + looked_at}, 0, evidence.got.columns()});
  const std::string rows = lost_rows(evidence);
  return text.empty() || rows.empty() ? text + rows : text + "; " + rows;
}

}  // namespace plumb::cases
