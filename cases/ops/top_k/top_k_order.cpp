// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/top_k/top_k_order.h"

#include <fmt/format.h>

#include <algorithm>

namespace plumb::cases {

namespace {

using reference::is_free;
using reference::LogitWindow;

// Stands for any index whose key equals the threshold. It is neither an index nor -1, the padding.
constexpr std::int32_t kSomeEqualKey = -2;

std::uint32_t least_key(const LogitWindow& window, const std::int32_t* indices, std::int32_t k) {
  std::uint32_t least = window.key(indices[0]);
  for (std::int32_t i = 1; i < k; ++i) {
    least = std::min(least, window.key(indices[i]));
  }
  return least;
}

// First place that contradicts the declared order; k: none.
std::int32_t first_out_of_order(const LogitWindow& window, std::int32_t k,
                                const std::int32_t* indices, plumb_index_order order) {
  for (std::int32_t i = 1; i < k; ++i) {
    const bool ascending = indices[i - 1] < indices[i];
    const bool by_key = window.key(indices[i - 1]) >= window.key(indices[i]);
    if (order == PLUMB_INDICES_ASCENDING && !ascending) return i;
    if (order == PLUMB_INDICES_BY_KEY && !by_key) return i;
  }
  return k;
}

// Place of a selected index at the threshold although a lower index with an equal key was left out;
// k: none.
std::int32_t first_not_lowest(const LogitWindow& window, std::int32_t k,
                              const std::int32_t* indices) {
  const std::uint32_t least = least_key(window, indices, k);
  std::vector<std::int32_t> equal;
  for (std::int32_t i = 0; i < k; ++i) {
    if (window.key(indices[i]) == least) equal.push_back(indices[i]);
  }
  std::sort(equal.begin(), equal.end());
  std::size_t next = 0;
  for (std::int32_t i = 0; i < window.length && next < equal.size(); ++i) {
    if (window.key(i) != least) continue;
    if (equal[next++] == i) continue;
    const auto found = std::find(indices, indices + k, equal[next - 1]);
    return static_cast<std::int32_t>(found - indices);
  }
  return k;
}

// A declaration that a row breaks, in words, and the place where it does.
struct BrokenPromise {
  std::int32_t place = 0;
  const char* what = nullptr;  // null: nothing is broken
};
BrokenPromise broken_promise(const LogitWindow& window, std::int32_t k, const std::int32_t* indices,
                             const plumb_numerics& declared) {
  const std::int32_t place = first_out_of_order(window, k, indices, declared.index_order);
  if (place < k && declared.index_order == PLUMB_INDICES_ASCENDING) {
    return {place, "the indices are declared to be ascending"};
  }
  if (place < k) return {place, "the indices are declared to stand by descending key"};
  if (declared.equal_keys != PLUMB_EQUAL_KEYS_LOWEST_INDEX) return {};
  const std::int32_t higher = first_not_lowest(window, k, indices);
  if (higher == k) return {};
  return {higher, "of equal keys those with the lowest indices are declared to be taken"};
}

bool is_selection(const LogitWindow& window, std::int32_t k, const std::int32_t* indices) {
  return std::all_of(indices, indices + k,
                     [&](std::int32_t index) { return index >= 0 && index < window.length; });
}

void canonicalize_row(const LogitWindow& window, std::int32_t k, const plumb_numerics& declared,
                      std::int32_t* indices) {
  if (declared.equal_keys == PLUMB_EQUAL_KEYS_ANY) {
    const std::uint32_t least = least_key(window, indices, k);
    std::replace_if(
        indices, indices + k, [&](std::int32_t index) { return window.key(index) == least; },
        kSomeEqualKey);
  }
  std::sort(indices, indices + k);
}

}  // namespace

void judge_order(const HostTensor& indices, const TopKWindows& selection,
                 const plumb_numerics& declared, TensorReport& report) {
  const std::int32_t k = selection.k;
  BrokenPromise first;
  for (std::int64_t row = 0; row < std::ssize(selection.windows); ++row) {
    const LogitWindow& window = selection.windows[row];
    if (window.length <= k || is_free(window, k)) continue;
    const BrokenPromise broken =
        broken_promise(window, k, indices.row<std::int32_t>(row), declared);
    if (!broken.what) continue;
    if (report.wrong_rows.empty()) first = broken;
    report.wrong_rows.push_back(row);
  }
  if (report.wrong_rows.empty()) return;
  report.wrong_elements = std::ssize(report.wrong_rows);
  report.failures.push_back(
      fmt::format("{}: {}: {}, and are not: {}", indices.spec().name,
                  rows_of(report.wrong_rows, report.rows_total), first.what,
                  indices.coordinates(report.wrong_rows.front(), first.place)));
}

std::optional<HostTensor> canonical_selection(const HostTensor& indices,
                                              const TopKWindows& selection,
                                              const plumb_numerics& declared) {
  const bool order_is_open = declared.index_order == PLUMB_INDICES_ANY_ORDER ||
                             declared.index_order == PLUMB_INDICES_BY_KEY;
  if (!order_is_open && declared.equal_keys != PLUMB_EQUAL_KEYS_ANY) return std::nullopt;
  HostTensor canonical = indices;
  for (std::int64_t row = 0; row < std::ssize(selection.windows); ++row) {
    const LogitWindow& window = selection.windows[row];
    auto* place = canonical.row<std::int32_t>(row);
    if (is_free(window, selection.k)) std::fill_n(place, selection.k, kSomeEqualKey);
    if (window.length <= selection.k || !is_selection(window, selection.k, place)) continue;
    canonicalize_row(window, selection.k, declared, place);
  }
  return canonical;
}

}  // namespace plumb::cases
