// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace plumb::device {

// What a map has under the key. Throws std::out_of_range with `missing`: a map's own error names
// neither the key nor what it is of.
template <class Map>
auto& find_in(Map& map, const typename Map::key_type& key, const std::string& missing) {
  const auto found = map.find(key);
  if (found == map.end()) throw std::out_of_range(missing);
  return found->second;
}

}  // namespace plumb::device
