// SPDX-License-Identifier: Apache-2.0
//
// Memory of a simulated device: address space reserved as a whole and handed out in blocks, each
// between guard zones, poisoned when fresh and, otherwise, when freed. A freed block rests in
// quarantine before its addresses are used again, so that use after free stays recognisable.
//
//   plain:        [guard | payload | guard]       payload 256-byte aligned
//   page guards:  [closed page | guard payload guard | closed page]   payload 16-byte aligned, its
//   last
//                 16 bytes end at the closed page; a freed block is closed entirely
//   sparse:       [closed page | payload | closed page]   reads zero, no poison, no guard bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/sim/launch.h"
#include "device/sim/memory/address_space.h"
#include "device/sim/memory/guard.h"

namespace plumb::device::sim {

inline constexpr std::size_t kBlockAlignment = 256;
inline constexpr std::size_t kPageGuardAlignment = 16;
inline constexpr std::size_t kGuardBytes = 1024;  // on each side

class Memory : public MemoryMap {
 public:
  struct Options {
    std::uint16_t poison = kFreshPoison;
    bool page_guards = false;
    std::size_t limit = std::size_t{8} << 30;        // of live blocks, sparse ones aside
    std::size_t quarantine = std::size_t{64} << 20;  // of freed blocks; the newest always fits
    std::size_t address_space = std::size_t{32} << 30;
  };
  explicit Memory(const Options& options);
  ~Memory() override;

  // Zero bytes give an address of their own. Throws out_of_memory.
  void* allocate(std::size_t bytes, std::string_view label);
  void* allocate_sparse(std::size_t bytes, std::string_view label);
  // Throws invalid_argument for anything but nullptr and the start of a live block.
  void free(void* memory);

  // Every guard zone and every quarantined block that is not as it was laid, since the last call;
  // lays them anew.
  std::vector<GuardDamage> check_guards();

  // True if the address lies in this memory's address space, allocated or not.
  bool owns(const void* address) const;
  // Throws unless the range lies in one live block, or starts outside this memory.
  void check_range(std::string_view call, const void* begin, std::size_t bytes) const;
  const Region* find(std::uintptr_t address) const override;
  // What an access to an address of this memory that the system refused was: for a message.
  DeviceError explain(std::uintptr_t address, const std::string& who) const;

 private:
  struct GuardedBlock;
  const GuardedBlock* find_block(std::uintptr_t address) const;
  std::size_t size_of(std::size_t bytes) const;
  std::unique_ptr<GuardedBlock> place(std::size_t bytes, std::string_view label);
  void* insert(std::unique_ptr<GuardedBlock> block);
  void erase_overlapping(std::uintptr_t begin, std::uintptr_t end);
  void retire(GuardedBlock& block);
  void release_oldest();
  void check(GuardedBlock& block);

  Options options_;
  AddressSpace space_;
  // Sorted by address. A freed block stays until its addresses are used again.
  std::vector<std::unique_ptr<GuardedBlock>> blocks_;
  std::deque<GuardedBlock*> quarantine_;      // oldest first
  std::deque<GuardedBlock*> retired_sparse_;  // closed, their address space still held
  std::vector<GuardDamage> damage_;           // found so far, not yet reported
  std::size_t live_bytes_ = 0, quarantined_bytes_ = 0;
  mutable const GuardedBlock* last_hit_ = nullptr;
};

}  // namespace plumb::device::sim
