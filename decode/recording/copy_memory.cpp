// SPDX-License-Identifier: Apache-2.0
#include "decode/recording/copy_memory.h"

#include <algorithm>

namespace plumb::cases {

namespace {

// A device allocation is slow, so a chunk serves the copies of many calls.
constexpr std::size_t kChunk = std::size_t{16} << 20;
constexpr std::size_t kAlignment = 256;

}  // namespace

CopyMemory::~CopyMemory() {
  for (void* const chunk : chunks_) device_.free(chunk);
}

CopyMemory::CopyBlock CopyMemory::take(std::size_t bytes) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const auto fits = [&](const CopyBlock& block) {
    return block.bytes >= bytes && block.bytes / 2 <= bytes;
  };
  const auto spare = std::find_if(spare_.begin(), spare_.end(), fits);
  if (spare != spare_.end()) {
    const CopyBlock block = *spare;
    spare_.erase(spare);
    return block;
  }
  if (rest_.bytes < bytes) {
    const std::size_t chunk = std::max(bytes, kChunk);
    chunks_.push_back(device_.allocate_sparse(chunk, "copies of what calls read and write"));
    rest_ = {static_cast<std::byte*>(chunks_.back()), chunk};
  }
  const CopyBlock block{rest_.address, bytes};
  rest_ = {rest_.address + bytes, rest_.bytes - bytes};
  return block;
}

void CopyMemory::give_back(const std::vector<CopyBlock>& blocks) {
  spare_.insert(spare_.end(), blocks.begin(), blocks.end());
}

}  // namespace plumb::cases
