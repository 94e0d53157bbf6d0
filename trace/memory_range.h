// SPDX-License-Identifier: Apache-2.0
//
// Where a recorded tensor was in the engine's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace plumb::trace {

// Bytes [begin, end) of a storage, gaps between rows included.
struct MemoryRange {
  std::int64_t begin = 0, end = 0;
  bool overlaps(const MemoryRange& other) const { return begin < other.end && other.begin < end; }
};

// Which element is at which byte.
struct MemoryLayout {
  MemoryRange range;
  std::vector<std::int64_t> shape, strides;  // a dimension of one place has the stride 0
  std::string type;

  bool operator==(const MemoryLayout& other) const {
    return range.begin == other.range.begin && shape == other.shape && strides == other.strides &&
           type == other.type;
  }
};

// Of a tensor with a known storage. Nothing: the tensor has no elements.
std::optional<MemoryLayout> layout_of(const TraceTensor& tensor);

}  // namespace plumb::trace
