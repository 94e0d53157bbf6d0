// SPDX-License-Identifier: Apache-2.0
//
// Delta debugging (Zeller's ddmin): finds the part of a list that is needed, by halves first, then
// by ever smaller parts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace plumb::bisect {

// Returns the index of the first part that fails; nullopt if none fails.
template <class T>
using FirstFailing = std::function<std::optional<std::size_t>(const std::vector<std::vector<T>>&)>;

// Splits the list into `count` parts. Returns the parts, then the list without each part.
template <class T>
std::vector<std::vector<T>> parts_and_rests(const std::vector<T>& all, std::size_t count) {
  std::vector<std::vector<T>> parts, rests;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(all.size() * i / count);
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(all.size() * (i + 1) / count);
    parts.emplace_back(begin, end);
    std::vector<T>& rest = rests.emplace_back(all.begin(), begin);
    rest.insert(rest.end(), end, all.end());
  }
  // For two parts, the rest of one is the other.
  if (count > 2) parts.insert(parts.end(), rests.begin(), rests.end());
  return parts;
}

// A minimal failing part of a failing list: it fails, and with any one element left out it does
// not.
template <class T>
std::vector<T> minimal_part(std::vector<T> all, const FirstFailing<T>& first_failing) {
  if (all.empty() || first_failing({{}})) return {};
  for (std::size_t count = 2; all.size() > 1;) {
    auto parts = parts_and_rests(all, count);
    if (const auto found = first_failing(parts)) {
      const bool is_rest = *found >= count;
      all = std::move(parts[*found]);
      count = is_rest ? std::max<std::size_t>(count - 1, 2) : 2;
    } else {
      if (count >= all.size()) break;
      count = 2 * count;
    }
    count = std::min(count, std::max<std::size_t>(all.size(), 2));
  }
  return all;
}

}  // namespace plumb::bisect
