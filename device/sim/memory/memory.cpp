// SPDX-License-Identifier: Apache-2.0
//
// Places blocks in the address space, writes and checks their guard zones and poison, and finds the
// block of an address.
#include "device/sim/memory/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "device/sim/memory/freed_ranges.h"

namespace plumb::device::sim {

// [begin, end) is the block with its guards, [open_begin, open_end) the part of it that can be
// accessed.
struct Memory::GuardedBlock {
  std::string label;
  Region region;  // the bytes that the user asked for
  std::uintptr_t begin = 0, end = 0;
  std::uintptr_t open_begin = 0, open_end = 0;
  std::unique_ptr<AddressSpace> own_space;  // set for sparse blocks only
  bool quarantined = false;

  std::size_t bytes() const { return region.end - region.begin; }
};

namespace {

constexpr std::size_t kOpenStep = std::size_t{1} << 20;
constexpr std::size_t kWorthDropping = std::size_t{1} << 20;
constexpr std::size_t kRetiredSparse = 8;

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

std::uint8_t* bytes_at(std::uintptr_t address) { return reinterpret_cast<std::uint8_t*>(address); }

std::uintptr_t align_down(std::uintptr_t value, std::size_t multiple) {
  return value / multiple * multiple;
}

}  // namespace

// Old contents of recycled pages are overwritten when a block is placed on them.
Memory::Memory(const Options& options)
    : number_(next_number()),
      options_(options),
      space_(options.address_space, AddressSpace::Pages::recycled) {}

Memory::~Memory() {
  for (const auto& block : blocks_) remember(*block, number_);
}

void Memory::remember(const GuardedBlock& block, std::uint64_t number) {
  remember_freed({block.region.begin, block.region.end, block.label, number});
}

std::size_t Memory::size_of(std::size_t bytes) const {
  if (!options_.page_guards) return align_up(bytes + 2 * kGuardBytes, kBlockAlignment);
  return align_up(std::max<std::size_t>(bytes, 1), page_size()) + 2 * page_size();
}

std::unique_ptr<Memory::GuardedBlock> Memory::place(std::size_t bytes, std::string_view label) {
  const std::size_t size = size_of(bytes);
  auto block = std::make_unique<GuardedBlock>();
  block->begin = block->open_begin = space_.take(size);
  if (block->begin == 0) {
    throw DeviceError(ErrorKind::out_of_memory,
                      fmt::format("allocate '{}': no hole of {} bytes is left", label, size));
  }
  block->end = block->open_end = block->begin + size;
  block->region.begin = block->begin + kGuardBytes;
  if (options_.page_guards) {
    block->open_begin += page_size();
    block->open_end -= page_size();
    block->region.begin = block->open_end - align_up(bytes, kPageGuardAlignment);
    space_.open_pages(block->open_begin, block->open_end - block->open_begin);
  } else {
    space_.open_up_to(block->end, kOpenStep);
  }
  block->region.end = block->region.begin + bytes;
  return block;
}

void* Memory::allocate(std::size_t bytes, std::string_view label) {
  if (bytes > options_.limit - live_bytes_) {
    throw DeviceError(
        ErrorKind::out_of_memory,
        fmt::format("allocate '{}': {} bytes in addition to {} live ones exceed the device's {}",
                    label, bytes, live_bytes_, options_.limit));
  }
  auto block = place(bytes, label);
  erase_overlapping(block->begin, block->end);
  const Region& region = block->region;
  lay_guard(bytes_at(block->open_begin), region.begin - block->open_begin,
            block->open_begin - space_.begin());
  lay_poison(bytes_at(region.begin), bytes, options_.poison);
  lay_guard(bytes_at(region.end), block->open_end - region.end, region.end - space_.begin());
  block->label = label;
  live_bytes_ += bytes;
  return insert(std::move(block));
}

void* Memory::allocate_sparse(std::size_t bytes, std::string_view label) {
  if (bytes > kLargestSparse) {
    throw DeviceError(ErrorKind::invalid_argument,
                      fmt::format("allocate_sparse '{}': {} bytes; the most is {}", label, bytes,
                                  kLargestSparse));
  }
  const std::size_t open = align_up(std::max<std::size_t>(bytes, 1), page_size());
  auto block = std::make_unique<GuardedBlock>();
  block->own_space = std::make_unique<AddressSpace>(open + 2 * page_size());
  block->begin = block->own_space->begin();
  block->end = block->begin + block->own_space->bytes();
  block->open_begin = block->begin + page_size();
  block->open_end = block->end - page_size();
  block->own_space->open_pages(block->open_begin, open);
  block->own_space->keep_pages_small();
  block->region.begin = block->open_end - align_up(bytes, kBlockAlignment);
  block->region.end = block->region.begin + bytes;
  block->region.sparse = true;
  block->label = label;
  return insert(std::move(block));
}

void* Memory::insert(std::unique_ptr<GuardedBlock> block) {
  block->region.label = &block->label;
  void* memory = bytes_at(block->region.begin);
  const auto where = std::lower_bound(
      blocks_.begin(), blocks_.end(), block->begin,
      [](const auto& other, std::uintptr_t begin) { return other->begin < begin; });
  blocks_.insert(where, std::move(block));
  return memory;
}

void Memory::erase_overlapping(std::uintptr_t begin, std::uintptr_t end) {
  const auto first = std::partition_point(blocks_.begin(), blocks_.end(),
                                          [&](const auto& block) { return block->end <= begin; });
  const auto last = std::partition_point(first, blocks_.end(),
                                         [&](const auto& block) { return block->begin < end; });
  for (auto block = first; block != last; ++block) remember(**block, number_);
  blocks_.erase(first, last);
  last_hit_ = nullptr;
}

void Memory::free(void* memory) {
  if (memory == nullptr) return;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  auto* block = const_cast<GuardedBlock*>(find_block(address));
  if (block == nullptr) {
    throw DeviceError(ErrorKind::invalid_argument,
                      "free: the pointer is not of this device's memory");
  }
  if (block->region.freed) {
    throw DeviceError(ErrorKind::invalid_argument,
                      fmt::format("free: '{}' has been freed already", block->label));
  }
  if (block->region.begin != address) {
    throw DeviceError(
        ErrorKind::invalid_argument,
        fmt::format("free: the pointer is at offset {} of '{}', not at its start",
                    static_cast<std::int64_t>(address - block->region.begin), block->label));
  }
  check(*block);
  retire(*block);
}

void Memory::retire(GuardedBlock& block) {
  block.region.freed = true;
  if (block.own_space) {
    block.own_space->close_pages(block.open_begin, block.open_end - block.open_begin);
    retired_sparse_.push_back(&block);
    if (retired_sparse_.size() <= kRetiredSparse) return;
    const GuardedBlock& oldest = *retired_sparse_.front();
    retired_sparse_.pop_front();
    return erase_overlapping(oldest.begin, oldest.end);
  }
  if (options_.page_guards) {
    space_.lock_pages(block.open_begin, block.open_end - block.open_begin);
  } else {
    lay_poison(bytes_at(block.region.begin), block.bytes(), kFreedPoison);
  }
  live_bytes_ -= block.bytes();
  block.quarantined = true;
  quarantine_.push_back(&block);
  quarantined_bytes_ += block.end - block.begin;
  while (quarantined_bytes_ > options_.quarantine && quarantine_.size() > 1) release_oldest();
}

void Memory::release_oldest() {
  GuardedBlock& block = *quarantine_.front();
  quarantine_.pop_front();
  check(block);
  block.quarantined = false;
  const std::size_t size = block.end - block.begin;
  quarantined_bytes_ -= size;
  space_.give(block.begin, size);
  if (size < kWorthDropping) return;
  const std::uintptr_t first = align_up(block.begin, page_size());
  space_.drop_pages(first, align_down(block.end, page_size()) - first);
}

void Memory::check(GuardedBlock& block) {
  const Region& region = block.region;
  if (region.sparse || (region.freed && options_.page_guards)) return;
  const auto note = [&](std::uintptr_t begin, const ByteDifference& difference,
                        const char* suffix) {
    const auto offset = static_cast<std::int64_t>(begin + difference.offset - region.begin);
    damage_.push_back(
        {block.label + suffix, offset, difference.expected, difference.got, difference.bytes});
  };
  const auto check_zone = [&](std::uintptr_t begin, std::uintptr_t end) {
    const std::uint64_t position = begin - space_.begin();
    const auto difference = compare_guard(bytes_at(begin), end - begin, position);
    if (!difference) return;
    note(begin, *difference, region.freed ? " (freed)" : "");
    lay_guard(bytes_at(begin), end - begin, position);
  };
  check_zone(block.open_begin, region.begin);
  check_zone(region.end, block.open_end);
  if (!region.freed) return;
  const auto difference = compare_poison(bytes_at(region.begin), block.bytes(), kFreedPoison);
  if (!difference) return;
  note(region.begin, *difference, " (freed)");
  lay_poison(bytes_at(region.begin), block.bytes(), kFreedPoison);
}

std::vector<GuardDamage> Memory::check_guards() {
  for (const auto& block : blocks_) {
    if (!block->region.freed || block->quarantined) check(*block);
  }
  return std::exchange(damage_, {});
}

const Memory::GuardedBlock* Memory::find_block(std::uintptr_t address) const {
  if (last_hit_ != nullptr && address >= last_hit_->begin && address < last_hit_->end) {
    return last_hit_;
  }
  const auto after = std::partition_point(
      blocks_.begin(), blocks_.end(), [&](const auto& block) { return block->begin <= address; });
  if (after == blocks_.begin()) return nullptr;
  const GuardedBlock* block = std::prev(after)->get();
  if (address >= block->end) return nullptr;
  return last_hit_ = block;
}

const MemoryMap::Region* Memory::find(std::uintptr_t address) const {
  const GuardedBlock* block = find_block(address);
  return block == nullptr ? nullptr : &block->region;
}

bool Memory::owns(const void* address) const {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return space_.holds(value) || find_block(value) != nullptr;
}

void Memory::check_range(std::string_view call, const void* begin, std::size_t bytes) const {
  if (bytes == 0 || !owns(begin)) return;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const Region* region = find(address);
  const bool inside = region != nullptr && address >= region->begin && address <= region->end &&
                      bytes <= region->end - address;
  if (inside && !region->freed) return;
  if (region == nullptr) {
    throw DeviceError(ErrorKind::out_of_bounds,
                      fmt::format("{}: {} bytes outside every allocation{}", call, bytes,
                                  beyond_nearest(address)));
  }
  const auto offset = static_cast<std::int64_t>(address - region->begin);
  throw DeviceError(
      region->freed ? ErrorKind::use_after_free : ErrorKind::out_of_bounds,
      fmt::format(
          "{}: bytes {} to {} of '{}', which {}", call, offset,
          offset + static_cast<std::int64_t>(bytes), *region->label,
          region->freed ? "has been freed" : fmt::format("has {}", region->end - region->begin)));
}

// How far an address outside of all blocks is from the nearest live block.
std::string Memory::beyond_nearest(std::uintptr_t address) const {
  const GuardedBlock* nearest = nullptr;
  std::uintptr_t least = 0;
  for (const auto& block : blocks_) {
    const Region& region = block->region;
    if (region.freed) continue;
    const std::uintptr_t away =
        address < region.begin ? region.begin - address : address - region.end;
    if (nearest == nullptr || away < least) {
      nearest = block.get();
      least = away;
    }
  }
  if (nearest == nullptr) return "";
  return fmt::format(", {} bytes {} '{}'", least,
                     address < nearest->region.begin ? "in front of" : "behind", nearest->label);
}

DeviceError Memory::explain(std::uintptr_t address, const std::string& who) const {
  const Region* region = find(address);
  if (region == nullptr) {
    return DeviceError(
        ErrorKind::out_of_bounds,
        who + ": access to device memory outside every allocation" + beyond_nearest(address));
  }
  const auto offset = static_cast<std::int64_t>(address - region->begin);
  if (region->freed) {
    return DeviceError(ErrorKind::use_after_free,
                       fmt::format("{}: access to offset {} of '{}', which has been freed", who,
                                   offset, *region->label));
  }
  return DeviceError(ErrorKind::out_of_bounds,
                     fmt::format("{}: access to offset {} of '{}', which has {} bytes", who, offset,
                                 *region->label, region->end - region->begin));
}

}  // namespace plumb::device::sim
