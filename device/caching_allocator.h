// SPDX-License-Identifier: Apache-2.0
//
// A caching allocator with graph pools, as inference engines have, on top of any Device. It serves
// one stream: all users of its memory run there, so that a block may be handed on while work with
// its last owner is still pending.
//
// Memory comes from the device in segments, is cut into pieces of 256 bytes and multiples, and goes
// back when the allocator or the pool goes. An allocation takes the smallest free piece that
// suffices (of equals the lowest), and only without one a new segment. Pieces have no guard zones
// between them.
//
//   Reuse::at_once     a freed piece is free at once and keeps its bytes: who still holds its
//   address
//                      reads, and overwrites, plausible bytes of somebody else. What engines do.
//   Reuse::quarantine  a freed piece is filled with kCachePoison, in stream order, and not used
//   again
//                      until 64 MiB have been freed after it: who still holds its address reads
//                      poison, and check_quarantine finds what was written.
//
// Pools. Between begin_pool and end_pool every allocation comes from that pool, and nobody else is
// ever given memory of it, until release_pool says that its graphs are gone. Inside a capture the
// device refuses plain allocation, so that a pool can serve only what reserve, or use before the
// capture, gave it; without an active pool an allocation inside a capture is a plain one and fails
// as such, even if a free piece is there: the graph would keep an address that others are given
// later.
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

inline constexpr std::size_t kGranule = 256;  // bytes; the size of a piece is a multiple
// Bytes of the piece that a request of `bytes` gets.
std::size_t granules(std::size_t bytes);

inline constexpr std::uint16_t kCachePoison = 0x7FF9;  // NaN as bf16, in pairs as fp32

class CachingAllocator {
 public:
  enum class Reuse { at_once, quarantine };
  using Pool = int;

  CachingAllocator(Device& device, Stream stream, Reuse reuse);
  // Gives everything back to the device, used or not.
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // 256-byte aligned. Throws what Device::allocate throws.
  void* allocate(std::size_t bytes, std::string_view label);
  // Throws invalid_argument for what is not the start of a used piece. Inside a capture a piece
  // from outside the active pool goes into quarantine unpoisoned: the filling would become part of
  // the graph.
  void free(void* memory);

  // Number of the allocation that the address belongs to, another one for each; 0: of none.
  std::uint64_t allocation_of(const void* address) const;

  Pool create_pool();
  void reserve(Pool pool, std::size_t bytes);  // one free piece of this size, outside captures
  void begin_pool(Pool pool);
  void end_pool();
  // Throws invalid_argument, and names the piece, if one of the pool is still in use.
  void release_pool(Pool pool);

  // Quarantined pieces outside pools that somebody has written to, since the last call. Waits.
  std::vector<GuardDamage> check_quarantine();

 private:
  enum class PieceState { free, used, quarantined, poisoned };
  struct CachedPiece {
    std::size_t bytes = 0;
    void* segment = nullptr;
    Pool pool = 0;
    PieceState state = PieceState::free;
    std::uint64_t allocation = 0;  // counts from 1
    std::string label;             // of the last owner
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
  Pieces pieces_;  // of all segments, by address
  std::uint64_t allocations_ = 0;
  std::vector<bool> pools_;  // which exist; 0 is everything outside pools
  Pool active_ = 0;
  std::deque<std::uintptr_t> quarantined_;  // oldest first
  std::size_t quarantined_bytes_ = 0;
};

// The pool is active while this lives.
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
