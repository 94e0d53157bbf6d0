// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace plumb::device {

// The value of `key`. Throws std::out_of_range with the text `missing`, because the exception of
// Map::at names neither the key nor the map.
template <class Map>
auto& find_in(Map& map, const typename Map::key_type& key, const std::string& missing) {
  const auto found = map.find(key);
  if (found == map.end()) throw std::out_of_range(missing);
  return found->second;
}

}  // namespace plumb::device
