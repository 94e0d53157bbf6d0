// SPDX-License-Identifier: Apache-2.0
//
// A list in the order of a key; those of one key as they were. (std::stable_sort of libstdc++ uses
// what clang calls deprecated.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace plumb::bisect {

template <class T, class KeyOf>
std::vector<T> sorted_by(std::vector<T> all, const KeyOf& key_of) {
  std::vector<std::pair<decltype(key_of(all.front())), std::size_t>> order;
  for (std::size_t i = 0; i < all.size(); ++i) order.emplace_back(key_of(all[i]), i);
  std::sort(order.begin(), order.end());
  std::vector<T> sorted;
  for (const auto& [key, place] : order) sorted.push_back(std::move(all[place]));
  return sorted;
}

}  // namespace plumb::bisect
