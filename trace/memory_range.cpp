// SPDX-License-Identifier: Apache-2.0
#include "trace/memory_range.h"

#include <algorithm>

namespace plumb::trace {

namespace {

constexpr std::int64_t kFarthest = std::int64_t{1} << 60;  // bytes; limit of distances

// a * b + c for numbers from 0 to kFarthest, limited to kFarthest.
std::int64_t limited(std::int64_t a, std::int64_t b, std::int64_t c) {
  if (a != 0 && b > kFarthest / a) return kFarthest;
  return std::min(kFarthest, a * b + c);
}

}  // namespace

std::optional<MemoryLayout> layout_of(const TraceTensor& tensor) {
  if (tensor.elements() == 0) return std::nullopt;
  MemoryLayout layout{
      .range = {}, .shape = tensor.shape, .strides = tensor.strides, .type = tensor.type.name};
  if (layout.strides.empty()) {
    layout.strides.resize(layout.shape.size());
    std::int64_t stride = 1;
    for (std::size_t i = layout.shape.size(); i-- > 0; stride *= layout.shape[i]) {
      layout.strides[i] = stride;
    }
  }
  // Extent before and behind the first element, in elements.
  std::int64_t before = 0, behind = 0;
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    const std::int64_t places = layout.shape[i] - 1;
    std::int64_t& stride = layout.strides[i];
    if (places == 0) stride = 0;
    if (stride >= 0) behind = limited(stride, places, behind);
    if (stride < 0) before = limited(-stride, places, before);
  }
  const std::int64_t first = std::min(tensor.offset, kFarthest);
  layout.range.begin = first - limited(before, tensor.type.bytes, 0);
  layout.range.end = first + limited(behind, tensor.type.bytes, tensor.type.bytes);
  return layout;
}

}  // namespace plumb::trace
