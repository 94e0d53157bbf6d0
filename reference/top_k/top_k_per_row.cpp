// SPDX-License-Identifier: Apache-2.0
#include "reference/top_k/top_k_per_row.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "reference/bound.h"

namespace plumb::reference {

namespace {

// Key and index in one number, so that descending order of these numbers is "descending key, then
// ascending index".
std::vector<std::uint64_t> ranked(const LogitWindow& window) {
  std::vector<std::uint64_t> ranks(static_cast<std::size_t>(window.length));
  for (std::int64_t i = 0; i < window.length; ++i) {
    const std::uint64_t key = window.key(i);
    ranks[i] = key << 32 | static_cast<std::uint32_t>(~static_cast<std::uint32_t>(i));
  }
  return ranks;
}

std::int32_t index_of(std::uint64_t rank) {
  return static_cast<std::int32_t>(~static_cast<std::uint32_t>(rank));
}

// The k-th largest key of a window longer than k, and the number of selected elements with exactly
// this key.
struct Threshold {
  std::uint32_t key = 0;
  std::int64_t ties = 0;
};

Threshold threshold_of(const std::vector<std::int32_t>& canonical, const LogitWindow& window) {
  Threshold threshold{window.key(canonical.back()), 0};
  for (const std::int32_t index : canonical) threshold.ties += window.key(index) == threshold.key;
  return threshold;
}

// Runs body(row) for every row, on several threads if the rows are long enough.
void for_each_row(const std::vector<LogitWindow>& windows,
                  const std::function<void(std::int64_t row)>& body) {
  constexpr std::int64_t kLogitsWorthAThread = 1 << 15;
  std::int64_t longest = 1;
  for (const LogitWindow& window : windows) longest = std::max(longest, window.length);
  parallel_for(std::ssize(windows), std::max<std::int64_t>(1, kLogitsWorthAThread / longest),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) body(row);
               });
}

std::vector<WrongPlace> check_identity(const LogitWindow& window, std::int32_t k,
                                       const std::int32_t* indices) {
  std::vector<WrongPlace> wrong;
  for (std::int32_t place = 0; place < k; ++place) {
    const bool valid = place < window.length;
    const std::int32_t expected = valid ? place : -1;
    if (indices[place] == expected) continue;
    SelectionError error = SelectionError::dirty_tail;
    if (valid) error = indices[place] == -1 ? SelectionError::hole : SelectionError::not_identity;
    wrong.push_back({place, error, expected});
  }
  return wrong;
}

}  // namespace

std::uint32_t order_key(float logit) {
  const auto bits = std::bit_cast<std::uint32_t>(logit);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

const void* logit_address(const void* logits, bool bf16, std::int64_t element) {
  if (bf16) return static_cast<const std::uint16_t*>(logits) + element;
  return static_cast<const float*>(logits) + element;
}

float LogitWindow::logit(std::int64_t local) const {
  const void* at = logit_address(first, bf16, local * column_stride);
  if (!bf16) return *static_cast<const float*>(at);
  // By bits: a conversion between formats would change signalling NaN.
  return std::bit_cast<float>(std::uint32_t{*static_cast<const std::uint16_t*>(at)} << 16);
}

std::uint32_t LogitWindow::key(std::int64_t local) const {
  constexpr std::uint32_t kMost = 0xffffffffu;
  const float value = logit(local);
  if (zeros_are_equal && value == 0) return order_key(0);
  return std::isnan(value) && nan_order != NanOrder::sign_ordered ? kMost : order_key(value);
}

bool is_free(const LogitWindow& window, std::int32_t k) {
  if (window.nan_order != NanOrder::unspecified || window.length <= k) return false;
  for (std::int64_t i = 0; i < window.length; ++i) {
    if (std::isnan(window.logit(i))) return true;
  }
  return false;
}

void select_top_k(const LogitWindow& window, std::int32_t k, std::int32_t* indices) {
  if (k < 1 || window.length < 0) throw std::invalid_argument("top-k: k < 1 or negative length");
  if (window.length <= k) {
    for (std::int32_t i = 0; i < k; ++i) indices[i] = i < window.length ? i : -1;
    return;
  }
  std::vector<std::uint64_t> ranks = ranked(window);
  std::nth_element(ranks.begin(), ranks.begin() + k - 1, ranks.end(), std::greater<>());
  std::sort(ranks.begin(), ranks.begin() + k, std::greater<>());
  std::transform(ranks.begin(), ranks.begin() + k, indices, index_of);
}

std::vector<std::int32_t> select_top_k(const std::vector<LogitWindow>& windows, std::int32_t k) {
  std::vector<std::int32_t> indices(windows.size() * static_cast<std::size_t>(std::max(k, 0)));
  for_each_row(windows,
               [&](std::int64_t row) { select_top_k(windows[row], k, indices.data() + row * k); });
  return indices;
}

std::string_view name_of(SelectionError error) {
  switch (error) {
    case SelectionError::hole: return "-1 inside the valid prefix";
    case SelectionError::out_of_range: return "index outside the row's window";
    case SelectionError::repeated: return "index returned twice";
    case SelectionError::loser: return "a larger logit was left out";
    case SelectionError::not_identity:
      return "window not longer than k, but not its columns in order";
    case SelectionError::dirty_tail: return "not -1 behind the valid prefix";
  }
  return "";
}

std::vector<WrongPlace> check_selection(const LogitWindow& window, std::int32_t k,
                                        const std::int32_t* indices) {
  if (window.length <= k) return check_identity(window, k, indices);
  std::vector<std::int32_t> canonical(static_cast<std::size_t>(k));
  select_top_k(window, k, canonical.data());
  const Threshold threshold = threshold_of(canonical, window);
  const bool free = is_free(window, k);

  std::vector<WrongPlace> wrong;
  std::vector<bool> seen(static_cast<std::size_t>(window.length));
  std::int64_t ties = 0;
  for (std::int32_t place = 0; place < k; ++place) {
    const std::int32_t index = indices[place];
    if (index == -1) {
      if (free) continue;
      wrong.push_back({place, SelectionError::hole, 0});
    } else if (index < 0 || index >= window.length) {
      wrong.push_back({place, SelectionError::out_of_range, 0});
    } else if (seen[index]) {
      wrong.push_back({place, SelectionError::repeated, 0});
    } else {
      // One tie too many means that a larger key was left out.
      const std::uint32_t key = window.key(index);
      seen[index] = true;
      if (free) continue;
      ties += key == threshold.key;
      const bool loses = key < threshold.key || (key == threshold.key && ties > threshold.ties);
      if (loses) wrong.push_back({place, SelectionError::loser, 0});
    }
  }
  // At least as many winners of the canonical selection are missing as places are wrong. Each wrong
  // place names one of them, the largest keys first.
  auto missing = canonical.begin();
  for (WrongPlace& place : wrong) {
    missing = std::find_if(missing, canonical.end(), [&](std::int32_t i) { return !seen[i]; });
    place.expected = *missing++;
  }
  return wrong;
}

std::vector<std::vector<WrongPlace>> check_selection(const std::vector<LogitWindow>& windows,
                                                     std::int32_t k, const std::int32_t* indices) {
  std::vector<std::vector<WrongPlace>> wrong(windows.size());
  for_each_row(windows, [&](std::int64_t row) {
    wrong[row] = check_selection(windows[row], k, indices + row * k);
  });
  return wrong;
}

}  // namespace plumb::reference
