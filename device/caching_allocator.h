// SPDX-License-Identifier: Apache-2.0
//
// A caching allocator with graph pools, like those of inference engines, on top of any Device. It
// serves one stream: all work on its memory runs there. So a freed block may be reused while work
// of its previous owner is still pending.
//
// Memory comes from the device in segments, which are cut into pieces whose sizes are multiples of
// 256 bytes. Segments go back to the device when the allocator or their pool is destroyed. An
// allocation takes the smallest free piece that is large enough (of equal ones the lowest address).
// A new segment is allocated only if no free piece fits. There are no guard zones between pieces.
//
//   Reuse::at_once     As in engines: a freed piece is free at once and keeps its bytes. A stale
//                      pointer then reads and overwrites plausible bytes of another tensor.
//   Reuse::quarantine  A freed piece is filled with kCachePoison, in stream order, and is not
//                      reused before 64 MiB more have been freed. A stale pointer then reads
//                      poison, and check_quarantine reports writes through it.
//
// Pools: between begin_pool and end_pool every allocation comes from the active pool. Memory of a
// pool serves no other allocation until release_pool, which is called when the pool's graphs are
// destroyed. The device refuses plain allocation during a capture, so a pool then serves only
// memory from `reserve` or from allocations before the capture. Without an active pool, an
// allocation during a capture fails even if a free piece exists: the graph would keep an address
// that is later given to another owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace plumb::device {

inline constexpr std::size_t kGranule = 256;  // bytes; piece sizes are multiples of it
// Size in bytes of the piece that serves a request of `bytes`.
std::size_t granules(std::size_t bytes);

// a NaN in bf16; two of them are a NaN in fp32
inline constexpr std::uint16_t kCachePoison = 0x7FF9;

class CachingAllocator {
 public:
  enum class Reuse { at_once, quarantine };
  using Pool = int;

  CachingAllocator(Device& device, Stream stream, Reuse reuse);
  // Returns all memory to the device, also pieces that are still used.
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // 256-byte aligned. Throws what Device::allocate throws.
  void* allocate(std::size_t bytes, std::string_view label);
  // Throws invalid_argument unless `memory` is the start of a used piece. Under Reuse::quarantine
  // during a capture, a piece from outside the active pool is not poisoned: the fill would become a
  // node of the graph.
  void free(void* memory);

  // Number of the allocation that contains `address`, 0 if there is none. No number is used twice.
  std::uint64_t allocation_of(const void* address) const;

  Pool create_pool();
  // adds one free piece of this size; call it outside captures
  void reserve(Pool pool, std::size_t bytes);
  void begin_pool(Pool pool);
  void end_pool();
  // Throws invalid_argument that names the piece if a piece of the pool is still in use.
  void release_pool(Pool pool);

  // Finds quarantined pieces outside pools whose bytes were changed since the last call, and
  // poisons them again. Waits for the stream.
  std::vector<GuardDamage> check_quarantine();

 private:
  enum class PieceState { free, used, quarantined, poisoned };
  struct CachedPiece {
    std::size_t bytes = 0;
    void* segment = nullptr;
    Pool pool = 0;
    PieceState state = PieceState::free;
    std::uint64_t allocation = 0;  // number of the allocation, from 1
    std::string label;             // the label that the last owner gave
  };
  using Pieces = std::map<std::uintptr_t, CachedPiece>;

  Pieces::iterator add_segment(std::size_t bytes, std::string_view label, Pool pool);
  Pieces::iterator smallest_free(std::size_t bytes, Pool pool);
  void make_free(Pieces::iterator piece);
  void quarantine(Pieces::iterator piece);
  void poison(std::uintptr_t begin, std::size_t bytes);
  void require_pool(Pool pool, const char* call) const;

  Device& device_;
  const Stream stream_;
  const Reuse reuse_;
  Pieces pieces_;  // pieces of all segments, by address
  std::uint64_t allocations_ = 0;
  std::vector<bool> pools_;  // whether each pool exists; pool 0 is all memory outside pools
  Pool active_ = 0;
  std::deque<std::uintptr_t> quarantined_;  // oldest first
  std::size_t quarantined_bytes_ = 0;
};

// Makes the pool active for the lifetime of this object.
class PoolScope {
 public:
  PoolScope(CachingAllocator& allocator, CachingAllocator::Pool pool) : allocator_(allocator) {
    allocator_.begin_pool(pool);
  }
  ~PoolScope() { allocator_.end_pool(); }
  PoolScope(const PoolScope&) = delete;
  PoolScope& operator=(const PoolScope&) = delete;

 private:
  CachingAllocator& allocator_;
};

}  // namespace plumb::device
