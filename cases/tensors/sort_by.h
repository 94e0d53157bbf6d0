// SPDX-License-Identifier: Apache-2.0
//
// Stable sort by a key. (std::stable_sort of libstdc++ 12 calls a function that C++17 deprecates,
// and clang warns about it.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace plumb::cases {

// Sorts by key(element). `before` compares two keys: std::greater<>() puts large keys first.
template <class Range, class Key, class Before = std::less<>>
void sort_by(Range&& range, const Key& key, const Before& before = {}) {
  using Element = std::decay_t<decltype(*std::begin(range))>;
  using KeyOf = std::decay_t<decltype(key(*std::begin(range)))>;
  std::vector<std::pair<KeyOf, std::size_t>> order;
  for (const Element& element : range) order.emplace_back(key(element), order.size());
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    if (before(a.first, b.first)) return true;
    return !before(b.first, a.first) && a.second < b.second;
  });
  std::vector<Element> sorted;
  for (const auto& [unused, place] : order) sorted.push_back(std::move(range[place]));
  std::move(sorted.begin(), sorted.end(), std::begin(range));
}

}  // namespace plumb::cases
