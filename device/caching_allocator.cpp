// SPDX-License-Identifier: Apache-2.0
//
// Pieces of all segments are in one map by address, so that adjacent free pieces are found and
// merged.
#include "device/caching_allocator.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace plumb::device {

namespace {

constexpr std::size_t kQuarantineBytes = std::size_t{64} << 20;
constexpr std::size_t kPatternWords = std::size_t{512} << 10;

// Static because a captured copy node reads this memory at every replay.
const std::vector<std::uint16_t>& pattern() {
  static const std::vector<std::uint16_t> words(kPatternWords, kCachePoison);
  return words;
}

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }
std::uintptr_t address_of(void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

[[noreturn]] void fail(const std::string& what) {
  throw DeviceError(ErrorKind::invalid_argument, "caching allocator: " + what);
}

}  // namespace

std::size_t granules(std::size_t bytes) {
  return std::max<std::size_t>((bytes + kGranule - 1) / kGranule, 1) * kGranule;
}

CachingAllocator::CachingAllocator(Device& device, Stream stream, Reuse reuse)
    : device_(device), stream_(stream), reuse_(reuse), pools_(1, true) {}

CachingAllocator::~CachingAllocator() {
  // device_.free throws if an exception left a capture open. The device then keeps the memory until
  // it is destroyed itself.
  try {
    for (const auto& [address, piece] : pieces_) {
      if (address == address_of(piece.segment)) device_.free(piece.segment);
    }
  } catch (const DeviceError&) {
  }
}

void* CachingAllocator::allocate(std::size_t bytes, std::string_view label) {
  const std::size_t size = granules(bytes);
  auto found = pieces_.end();
  if (active_ != 0 || !device_.capturing()) found = smallest_free(size, active_);
  if (found == pieces_.end()) found = add_segment(size, label, active_);
  auto& [address, piece] = *found;
  if (piece.bytes > size) {
    CachedPiece rest = piece;
    rest.bytes -= size;
    piece.bytes = size;
    pieces_.emplace(address + size, std::move(rest));
  }
  piece.state = PieceState::used;
  piece.label = label;
  piece.allocation = ++allocations_;
  return pointer(address);
}

CachingAllocator::Pieces::iterator CachingAllocator::add_segment(std::size_t bytes,
                                                                 std::string_view label,
                                                                 Pool pool) {
  void* segment = device_.allocate(bytes, "segment for '" + std::string(label) + "'");
  return pieces_
      .emplace(address_of(segment), CachedPiece{bytes, segment, pool, PieceState::free, 0, ""})
      .first;
}

CachingAllocator::Pieces::iterator CachingAllocator::smallest_free(std::size_t bytes, Pool pool) {
  auto best = pieces_.end();
  for (auto piece = pieces_.begin(); piece != pieces_.end(); ++piece) {
    const CachedPiece& candidate = piece->second;
    if (candidate.state != PieceState::free || candidate.pool != pool || candidate.bytes < bytes) {
      continue;
    }
    if (best == pieces_.end() || candidate.bytes < best->second.bytes) best = piece;
  }
  return best;
}

void CachingAllocator::free(void* memory) {
  if (memory == nullptr) return;
  const auto found = pieces_.find(address_of(memory));
  if (found == pieces_.end()) fail("free: not the start of a piece of this allocator");
  if (found->second.state != PieceState::used) {
    fail("free: '" + found->second.label + "' has been freed already");
  }
  if (reuse_ == Reuse::at_once) return make_free(found);
  device_.note_given_back(memory, found->second.bytes, found->second.label);
  quarantine(found);
}

void CachingAllocator::make_free(Pieces::iterator piece) {
  piece->second.state = PieceState::free;
  const auto merge = [this](Pieces::iterator first, Pieces::iterator second) {
    if (first->second.state != PieceState::free || second->second.state != PieceState::free ||
        first->second.segment != second->second.segment) {
      return false;
    }
    first->second.bytes += second->second.bytes;
    pieces_.erase(second);
    return true;
  };
  if (const auto next = std::next(piece); next != pieces_.end()) merge(piece, next);
  if (piece != pieces_.begin()) merge(std::prev(piece), piece);
}

void CachingAllocator::quarantine(Pieces::iterator found) {
  auto& [address, piece] = *found;
  piece.state = PieceState::quarantined;
  if (!device_.capturing() || (piece.pool != 0 && piece.pool == active_)) {
    poison(address, piece.bytes);
    piece.state = PieceState::poisoned;
  }
  quarantined_.push_back(address);
  quarantined_bytes_ += piece.bytes;
  while (quarantined_bytes_ > kQuarantineBytes && quarantined_.size() > 1) {
    const auto oldest = pieces_.find(quarantined_.front());
    quarantined_.pop_front();
    quarantined_bytes_ -= oldest->second.bytes;
    make_free(oldest);
  }
}

void CachingAllocator::poison(std::uintptr_t begin, std::size_t bytes) {
  const std::size_t largest = pattern().size() * sizeof(std::uint16_t);
  for (std::size_t done = 0; done < bytes; done += largest) {
    device_.copy(pointer(begin + done), pattern().data(), std::min(largest, bytes - done), stream_);
  }
}

void CachingAllocator::require_pool(Pool pool, const char* call) const {
  if (pool > 0 && pool < static_cast<Pool>(pools_.size()) && pools_[pool]) return;
  fail(std::string(call) + ": no pool " + std::to_string(pool));
}

std::uint64_t CachingAllocator::allocation_of(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto piece = pieces_.upper_bound(at);
  if (piece == pieces_.begin()) return 0;
  --piece;
  const bool used = piece->second.state == PieceState::used;
  return used && at < piece->first + piece->second.bytes ? piece->second.allocation : 0;
}

CachingAllocator::Pool CachingAllocator::create_pool() {
  pools_.push_back(true);
  return static_cast<Pool>(pools_.size()) - 1;
}

void CachingAllocator::reserve(Pool pool, std::size_t bytes) {
  require_pool(pool, "reserve");
  add_segment(granules(bytes), "pool " + std::to_string(pool), pool);
}

void CachingAllocator::begin_pool(Pool pool) {
  require_pool(pool, "begin_pool");
  if (active_ != 0) fail("begin_pool: pool " + std::to_string(active_) + " is active");
  active_ = pool;
}

void CachingAllocator::end_pool() { active_ = 0; }

void CachingAllocator::release_pool(Pool pool) {
  require_pool(pool, "release_pool");
  if (pool == active_) fail("release_pool: the pool is active");
  for (const auto& [address, piece] : pieces_) {
    if (piece.pool == pool && piece.state == PieceState::used) {
      fail("release_pool: '" + piece.label + "' is in use");
    }
  }
  for (auto piece = pieces_.begin(); piece != pieces_.end();) {
    const auto& [address, gone] = *piece;
    if (gone.pool != pool) {
      ++piece;
      continue;
    }
    if (std::erase(quarantined_, address) != 0) quarantined_bytes_ -= gone.bytes;
    if (address == address_of(gone.segment)) device_.free(gone.segment);
    piece = pieces_.erase(piece);
  }
  pools_[pool] = false;
}

std::vector<GuardDamage> CachingAllocator::check_quarantine() {
  std::vector<GuardDamage> damage;
  const auto* expected = reinterpret_cast<const std::uint8_t*>(pattern().data());
  for (const auto& [address, piece] : pieces_) {
    if (piece.state != PieceState::poisoned || piece.pool != 0) continue;
    std::vector<std::uint8_t> bytes(piece.bytes);
    device_.copy(bytes.data(), pointer(address), bytes.size(), stream_);
    GuardDamage found{piece.label + " (freed)", 0, 0, 0, 0};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == expected[i % 2]) continue;
      if (found.bytes++ > 0) continue;
      found.offset = static_cast<std::int64_t>(i);
      found.expected = expected[i % 2];
      found.got = bytes[i];
    }
    if (found.bytes == 0) continue;
    poison(address, piece.bytes);
    damage.push_back(std::move(found));
  }
  return damage;
}

}  // namespace plumb::device
