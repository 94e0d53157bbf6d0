// SPDX-License-Identifier: Apache-2.0
//
// Memory of a simulated device: address space reserved as a whole and handed out in blocks between
// guard zones. A block that is not sparse is poisoned when it is allocated. When it is freed, it is
// poisoned with another word, or its pages are closed. It then stays in quarantine before its
// addresses are used again, so that use after free is recognised.
//
//   plain:        [guard | payload | guard]       payload 256-byte aligned
//   page guards:  [closed page | guard payload guard | closed page]   payload 16-byte aligned, its
//                 last 16 bytes end at the closed page; all pages of a freed block are closed
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
inline constexpr std::size_t kGuardBytes = 1024;  // in front of and behind a payload

class Memory : public MemoryMap {
 public:
  struct Options {
    std::uint16_t poison = kFreshPoison;
    bool page_guards = false;
    std::size_t limit = std::size_t{8} << 30;  // most bytes of live blocks, without sparse ones
    // Most bytes of freed blocks in quarantine. The block freed last always fits.
    std::size_t quarantine = std::size_t{64} << 20;
    std::size_t address_space = std::size_t{32} << 30;
  };
  explicit Memory(const Options& options);
  ~Memory() override;

  // Zero bytes get an address of their own. Throws out_of_memory.
  void* allocate(std::size_t bytes, std::string_view label);
  void* allocate_sparse(std::size_t bytes, std::string_view label);
  // Throws invalid_argument unless `memory` is nullptr or the start of a live block.
  void free(void* memory);

  // Guard zones and quarantined blocks whose bytes were changed since the last call. Restores them.
  std::vector<GuardDamage> check_guards();

  // True if the address lies in this memory's address space, allocated or not.
  bool owns(const void* address) const;
  // Throws if the range starts in this memory and is not inside one live block.
  void check_range(std::string_view call, const void* begin, std::size_t bytes) const;
  const Region* find(std::uintptr_t address) const override;
  // The error for an access to this memory that the system refused. `who` starts the message.
  DeviceError explain(std::uintptr_t address, const std::string& who) const;
  // Differs for each object of the process, unlike addresses, which later objects use again.
  std::uint64_t number() const { return number_; }

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
  static void remember(const GuardedBlock& block, std::uint64_t number);
  std::string beyond_nearest(std::uintptr_t address) const;

  const std::uint64_t number_;
  Options options_;
  AddressSpace space_;
  // Sorted by address. A freed block stays until its addresses are used again.
  std::vector<std::unique_ptr<GuardedBlock>> blocks_;
  std::deque<GuardedBlock*> quarantine_;      // oldest first
  std::deque<GuardedBlock*> retired_sparse_;  // closed, but their address space is still reserved
  std::vector<GuardDamage> damage_;           // found so far, not yet reported
  std::size_t live_bytes_ = 0, quarantined_bytes_ = 0;
  mutable const GuardedBlock* last_hit_ = nullptr;
};

}  // namespace plumb::device::sim
