// SPDX-License-Identifier: Apache-2.0
//
// The place of a recorded tensor in the engine's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace plumb::trace {

// Bytes [begin, end) of a storage, including gaps between rows.
struct MemoryRange {
  std::int64_t begin = 0, end = 0;
  bool overlaps(const MemoryRange& other) const { return begin < other.end && other.begin < end; }
};

// The bytes that a tensor's elements occupy: two tensors with equal layouts have the same elements
// at the same bytes of a storage.
struct MemoryLayout {
  MemoryRange range;
  std::vector<std::int64_t> shape, strides;  // a dimension of size 1 has stride 0
  std::string type;

  bool operator==(const MemoryLayout& other) const {
    return range.begin == other.range.begin && shape == other.shape && strides == other.strides &&
           type == other.type;
  }
};

// Layout of a tensor whose storage is known. nullopt: the tensor has no elements.
std::optional<MemoryLayout> layout_of(const TraceTensor& tensor);

}  // namespace plumb::trace
