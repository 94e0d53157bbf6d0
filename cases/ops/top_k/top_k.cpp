// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/top_k/top_k.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "cases/judge/right_values.h"
#include "cases/judge/unwritten.h"
#include "cases/ops/top_k/top_k_order.h"
#include "cases/tables/problem.h"

namespace plumb::cases {

namespace {

using reference::check_selection;
using reference::is_free;
using reference::LogitWindow;
using reference::SelectionError;
using reference::WrongPlace;

using Wrong = std::vector<std::vector<WrongPlace>>;  // wrong places of each row

// Number of places of a right row where 0 instead of the stored index would be right too: the place
// that holds 0, or, if column 0 is an unselected tie at the threshold, all places with such a tie.
std::int64_t indifferent_places(const LogitWindow& window, std::int32_t k,
                                const std::int32_t* indices) {
  if (window.length <= k) return window.length > 0 ? 1 : 0;
  if (is_free(window, k)) return k;
  const std::uint32_t first = window.key(0);
  std::uint32_t least = window.key(indices[0]);
  for (std::int32_t i = 0; i < k; ++i) {
    if (indices[i] == 0) return 1;
    least = std::min(least, window.key(indices[i]));
  }
  if (first != least) return 0;
  return std::count_if(indices, indices + k,
                       [&](std::int32_t i) { return window.key(i) == least; });
}

// The wrong rows, from which error patterns are named.
struct SelectionEvidence {
  const HostTensor& indices;
  const TopKWindows& selection;
  const Wrong& wrong;
  const std::vector<std::int64_t>& rows;  // numbers of the wrong rows

  bool every_place(const std::function<bool(std::int64_t row, const WrongPlace&)>& holds) const {
    return std::all_of(rows.begin(), rows.end(), [&](std::int64_t row) {
      return std::all_of(wrong[row].begin(), wrong[row].end(),
                         [&](const WrongPlace& place) { return holds(row, place); });
    });
  }
  std::int32_t got(std::int64_t row, const WrongPlace& place) const {
    return indices.row<std::int32_t>(row)[place.place];
  }
};

// True if the row is right after its start is subtracted from every index.
bool right_when_shifted(const SelectionEvidence& evidence, std::int64_t row) {
  const auto* got = evidence.indices.row<std::int32_t>(row);
  const auto start = static_cast<std::int32_t>(evidence.selection.starts[row]);
  std::vector<std::int32_t> local(got, got + evidence.selection.k);
  for (std::int32_t& index : local) index -= index >= 0 ? start : 0;
  return check_selection(evidence.selection.windows[row], evidence.selection.k, local.data())
      .empty();
}

// True if the row is right for a window that ends `change` columns later.
bool right_when_longer(const SelectionEvidence& evidence, std::int64_t row, std::int64_t change) {
  const TopKWindows& selection = evidence.selection;
  LogitWindow window = selection.windows[row];
  window.length += change;
  if (window.length < 0 || selection.starts[row] + window.length > selection.columns) return false;
  return check_selection(window, selection.k, evidence.indices.row<std::int32_t>(row)).empty();
}

bool all_rows(const SelectionEvidence& evidence,
              const std::function<bool(const SelectionEvidence&, std::int64_t row)>& holds) {
  return std::all_of(evidence.rows.begin(), evidence.rows.end(),
                     [&](std::int64_t row) { return holds(evidence, row); });
}

// True if the place holds the poison 0x7b7b7b7b. The other poisons are 0 and -1, which may also be
// an index or padding.
bool holds_poison(const SelectionEvidence& evidence, std::int64_t row, const WrongPlace& place) {
  return evidence.got(row, place) == 0x7b7b7b7b;
}

// Names the pattern if every wrong row is right for another window: one that counts global columns,
// or is one column longer or shorter.
std::string name_other_window(const SelectionEvidence& evidence) {
  const std::int64_t row = evidence.rows.front();
  if (all_rows(evidence, right_when_shifted)) {
    return fmt::format(
        "every wrong index is too large by row_starts[row] ({} in row {}): global columns where "
        "the caller needs row-local ones",
        evidence.selection.starts[row], evidence.indices.original_row(row));
  }
  for (const std::int64_t change : {-1, 1}) {
    const auto changed = [&](const SelectionEvidence& e, std::int64_t r) {
      return right_when_longer(e, r, change);
    };
    if (all_rows(evidence, changed)) {
      return fmt::format("every wrong row is right for a window one column {}: off by one length",
                         change < 0 ? "shorter" : "longer");
    }
  }
  return "";
}

// True if every wrong row holds 0, 1, 2, ... in all places. With fewer than 4 wrong places this may
// be chance.
bool holds_first_columns(const SelectionEvidence& evidence) {
  constexpr std::size_t kFewPlaces = 4;
  std::size_t wrong = 0;
  for (const std::int64_t row : evidence.rows) wrong += evidence.wrong[row].size();
  return wrong >= kFewPlaces &&
         all_rows(evidence, [](const SelectionEvidence& e, std::int64_t row) {
           const auto* got = e.indices.row<std::int32_t>(row);
           const std::int64_t places =
               std::min<std::int64_t>(e.selection.k, e.selection.windows[row].length);
           for (std::int64_t i = 0; i < places; ++i) {
             if (got[i] != i) return false;
           }
           return true;
         });
}

// Names the pattern if all wrong places have the same kind of error.
std::string name_common_error(const SelectionEvidence& evidence) {
  const auto only = [&](SelectionError error) {
    return evidence.every_place(
        [&](std::int64_t, const WrongPlace& p) { return p.error == error; });
  };
  const auto poison = [&](std::int64_t r, const WrongPlace& p) {
    return holds_poison(evidence, r, p);
  };
  const auto zero = [&](std::int64_t r, const WrongPlace& p) { return evidence.got(r, p) == 0; };
  if (evidence.every_place(poison)) {
    return "no wrong place was written (each still holds plumb's poison)";
  }
  if (only(SelectionError::dirty_tail) && evidence.every_place(zero)) {
    return "0 instead of -1 behind the last valid index";
  }
  if (only(SelectionError::dirty_tail)) return "indices behind the first min(length, k) places";
  if (only(SelectionError::hole)) return "-1 inside the valid prefix: winners were dropped";
  if (only(SelectionError::repeated)) return "winners emitted twice crowd out others";
  if (holds_first_columns(evidence)) return "the first k columns instead of the k largest";
  return "";
}

std::string name_pattern(const SelectionEvidence& evidence) {
  const std::string other_window = name_other_window(evidence);
  return other_window.empty() ? name_common_error(evidence) : other_window;
}

std::string describe(const SelectionEvidence& evidence) {
  const std::int64_t row = evidence.rows.front();
  const std::vector<WrongPlace>& wrong = evidence.wrong[row];
  const WrongPlace& place = wrong.front();
  return fmt::format(
      "{}: {} wrong; row {} (length {}) differs in {} of {} places (first {}: {})",
      evidence.indices.spec().name,
      rows_of(original_rows(evidence.indices, evidence.rows), evidence.indices.original_rows()),
      evidence.indices.original_row(row), evidence.selection.windows[row].length, wrong.size(),
      evidence.selection.k, evidence.indices.coordinates(row, place.place), name_of(place.error));
}

Mismatch first_mismatch(const SelectionEvidence& evidence) {
  const std::int64_t row = evidence.rows.front();
  const WrongPlace& place = evidence.wrong[row].front();
  Mismatch mismatch;
  mismatch.row = evidence.indices.original_row(row);
  mismatch.column = place.place;
  mismatch.coordinates = evidence.indices.coordinates(row, place.place);
  mismatch.expected = place.expected;
  mismatch.got = evidence.got(row, place);
  mismatch.ratio = std::numeric_limits<double>::infinity();
  return mismatch;
}

}  // namespace

TensorReport judge_top_k(const HostTensor& indices, const TopKWindows& selection,
                         const plumb_numerics& declared) {
  const Wrong wrong =
      check_selection(selection.windows, selection.k, packed<std::int32_t>(indices).data());
  TensorReport report;
  report.tensor = indices.spec().name;
  report.rows_total = indices.original_rows();
  report.rows_compared = std::ssize(wrong);
  report.elements_compared = report.rows_compared * selection.k;
  std::int64_t indifferent = 0;
  std::int64_t zeros = 0;
  for (std::int64_t row = 0; row < std::ssize(wrong); ++row) {
    report.wrong_elements += std::ssize(wrong[row]);
    if (!wrong[row].empty()) {
      report.wrong_rows.push_back(row);
      continue;
    }
    const auto* got = indices.row<std::int32_t>(row);
    indifferent += indifferent_places(selection.windows[row], selection.k, got);
    zeros += std::count(got, got + selection.k, 0);
  }
  if (report.elements_compared > 0) {
    const auto all = static_cast<double>(report.elements_compared);
    report.observability = 1 - static_cast<double>(indifferent) / all;
    report.zero_share = static_cast<double>(zeros) / all;
  }
  if (report.wrong_rows.empty()) {
    judge_order(indices, selection, declared, report);
    return report;
  }
  const SelectionEvidence evidence{indices, selection, wrong, report.wrong_rows};
  report.failures.push_back(describe(evidence));
  report.pattern = name_pattern(evidence);
  report.worst = first_mismatch(evidence);
  report.margin = report.worst->ratio;
  report.wrong_rows = original_rows(indices, std::move(report.wrong_rows));
  return report;
}

namespace {

class SelectionTruth final : public Truth {
 public:
  SelectionTruth(const HostTensor& logits, TopKWindows selection, const plumb_numerics& declared)
      : logits_(logits.alias()), selection_(std::move(selection)), declared_(declared) {}

  TensorReport compare(const HostTensor& indices, const RowMask&,
                       const ColumnRanges&) const override {
    return judge_top_k(indices, selection_, declared_);
  }
  // Writes the reference's own selection, in the declared order, as the right values.
  void put(const HostTensor& indices, const RowMask&, const ColumnRanges&,
           RightValues& right) const override {
    const std::int32_t k = selection_.k;
    std::vector<std::int32_t> best = select_top_k(selection_.windows, k);
    for (std::size_t row = 0; row < selection_.windows.size(); ++row) {
      if (declared_.index_order == PLUMB_INDICES_BY_KEY || selection_.windows[row].length <= k) {
        continue;
      }
      const auto first = best.begin() + static_cast<std::ptrdiff_t>(row) * k;
      std::sort(first, first + k);
    }
    right.put(indices, {}, {}, [&](std::int64_t row, std::int64_t place) {
      return static_cast<std::uint32_t>(best[static_cast<std::size_t>(row * k + place)]);
    });
  }

 private:
  HostTensor logits_;  // keeps the data of the windows alive
  TopKWindows selection_;
  plumb_numerics declared_;
};

}  // namespace

Expectation expect_top_k(const TensorSet& tensors, TopKWindows selection,
                         const plumb_numerics& declared) {
  return {
      std::make_shared<const HostTensor>(tensors.at("indices").alias()),
      std::make_shared<const SelectionTruth>(tensors.at("logits"), std::move(selection), declared)};
}

void check_trivial(const Row& row, std::int64_t longest, std::int64_t k) {
  const std::string_view shape = longest <= 0 ? "zero" : longest <= k ? "identity" : "";
  if (row.trivial == shape) return;
  throw BadRow(fmt::format("{}: longest window {} and k {} need trivial = \"{}\"", row.where,
                           longest, k, shape));
}

double top_k_row_cost(std::int64_t columns, std::int64_t length, std::int64_t k) {
  constexpr double kThreadStart = 10, kColumnsOfThread = 32;
  constexpr double kPasses = 3, kBins = 2048, kBinVisits = 3;  // clear, count, search
  constexpr double kPassWaits = 3 * kBarrierCost + 5 * kShuffleCost;
  constexpr double kTileWaits = kBarrierCost + 5 * kShuffleCost;
  const double threads = columns > 16384 ? 1024 : columns > 8192 ? 512 : 256;
  if (length <= k) return threads * kThreadStart + static_cast<double>(k);
  const double tiles = std::ceil(static_cast<double>(length) / (threads * kColumnsOfThread));
  const double searching = kPasses * (threads * kPassWaits + kBins * kBinVisits);
  const double columns_once =
      4 * static_cast<double>(length);  // of one visit to all columns; there are two
  return searching + tiles * threads * kTileWaits + 2 * columns_once;
}

}  // namespace plumb::cases
