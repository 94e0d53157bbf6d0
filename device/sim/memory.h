// SPDX-License-Identifier: Apache-2.0
//
// Memory of a simulated device: address space that is reserved as a whole and handed out in blocks,
// each between guard zones, poisoned when fresh and again, otherwise, when freed. A freed block
// rests in quarantine before its addresses are used again, so that use after free stays
// recognisable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/sim/address_space.h"
#include "device/sim/launch.h"

namespace plumb::device::sim {

// 16-bit words: NaN as bf16, NaN in pairs as fp32, a huge positive index as int32.
inline constexpr std::uint16_t kFreshPoison = 0x7FF5;
inline constexpr std::uint16_t kPinnedPoison = 0x7FF3;
inline constexpr std::uint16_t kFreedPoison = 0x7FFB;

inline constexpr std::size_t kAlignment = 256;
inline constexpr std::size_t kGuardBytes = 1024;  // on each side

class Memory : public MemoryMap {
 public:
  struct Options {
    std::uint16_t poison = kFreshPoison;
    bool page_guards = false;
    std::size_t limit = std::size_t{8} << 30;         // of live blocks, sparse ones aside
    std::size_t quarantine = std::size_t{256} << 20;  // of freed blocks that keep their poison
    std::size_t address_space = std::size_t{32} << 30;
  };
  explicit Memory(const Options& options);
  ~Memory() override;

  void* allocate(std::size_t bytes, std::string_view label);
  void* allocate_sparse(std::size_t bytes, std::string_view label);
  void free(void* memory);
  std::vector<GuardDamage> check_guards();

  // True if the address lies in this memory's address space, allocated or not.
  bool owns(const void* address) const;
  // Throws unless the range lies in one live block, or wholly outside this memory.
  void check_range(std::string_view call, const void* begin, std::size_t bytes) const;
  const Region* find(std::uintptr_t address) const override;

 private:
  struct Block;
  const Block* find_block(std::uintptr_t address) const;
  void release_oldest();

  Options options_;
  AddressSpace space_;
  std::vector<std::unique_ptr<Block>> blocks_;  // sorted by address, live and freed
  std::deque<Block*> quarantine_;
  std::size_t live_bytes_ = 0, quarantined_bytes_ = 0;
  mutable const Block* last_hit_ = nullptr;
};

}  // namespace plumb::device::sim
