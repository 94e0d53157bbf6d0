// SPDX-License-Identifier: Apache-2.0
//
// Finds the memory that an access goes to (shared, global, arguments, constants), and reports a
// wrong access.
#include "device/sim/checked/checked.h"

#include <fmt/format.h>

#include "device/sim/grid/block.h"

namespace plumb::device::sim {

constinit thread_local Checker* checker = nullptr;

namespace {

const char* verb(const Access& access) {
  if (access.atomic) return "atomic update";
  return access.write ? "write" : "read";
}

}  // namespace

void Checker::start_kernel(const KernelCall& call, const MemoryMap& memory, int wave_size) {
  call_ = &call;
  memory_ = &memory;
  recent_.fill({});
  shadow_.trim(clock_.is_worn_out());
  if (clock_.is_worn_out()) clock_.restart();
  clock_.start_kernel(call.shape.block, wave_size);
}

// Shuffles and votes move registers. They do not order memory, as on hardware.
void Checker::pass_wave_operation(WaveKind kind, int wave, std::uint64_t lanes) {
  if (kind == WaveKind::sync) clock_.pass_wave_sync(wave, lanes);
}

// Data that a kernel may read besides device memory: its arguments, and constants of the program.
bool Checker::is_launch_data(const Access& access) const {
  if (access.write) return false;
  const auto arguments = reinterpret_cast<std::uintptr_t>(call_->arguments.get());
  return access.address - arguments < call_->argument_bytes || is_program_data(access.address);
}

void Checker::check_shadow(const Access& access, std::uint32_t floor, bool needs_write) {
  AccessVerdict finding;
  if (!shadow_.access(access, clock_, block_.running().thread, floor, needs_write, finding))
    fail(access, finding);
}

void Checker::access_shared(const Access& access) {
  const SharedMemory& shared = block_.shared();
  const SharedMemory::Array* array = shared.array_at(access.address);
  if (array == nullptr || shared.array_at(access.address + access.bytes - 1) != array)
    block_.fail(ErrorKind::out_of_bounds, describe_shared_bounds(access));
  check_shadow(access, clock_.first_segment_of_block(), true);
}

const Checker::Region* Checker::find_region(std::uintptr_t address) {
  for (const RecentRegion& recent : recent_)
    if (address - recent.begin < recent.bytes) return recent.region;
  const Region* const region = memory_->find(address);
  if (region != nullptr)
    recent_[next_recent_++ % recent_.size()] = {region->begin, region->end - region->begin, region};
  return region;
}

void Checker::access_global(const Access& access) {
  const Region* const region = find_region(access.address);
  if (region == nullptr && is_launch_data(access)) return;
  if (region != nullptr && region->freed)
    block_.fail(ErrorKind::use_after_free, describe_global_bounds(access, region));
  if (region == nullptr || access.address < region->begin ||
      access.address + access.bytes > region->end)
    block_.fail(ErrorKind::out_of_bounds, describe_global_bounds(access, region));
  check_shadow(access, clock_.first_segment_of_kernel(), false);
}

void Checker::access(const Access& access) {
  if (block_.running().fiber->holds(reinterpret_cast<const void*>(access.address))) return;
  if (block_.shared().contains(access.address))
    access_shared(access);
  else
    access_global(access);
}

void Checker::fail(const Access& access, const AccessVerdict& finding) {
  const bool race = finding.kind == AccessVerdict::Flaw::race;
  block_.fail(race ? ErrorKind::race : ErrorKind::uninitialized_read, describe(access, finding));
}

std::string Checker::describe(const Access& access, const AccessVerdict& finding) {
  std::string text = fmt::format("{} of {} bytes", verb(access), access.bytes);
  const SharedMemory& shared = block_.shared();
  if (shared.contains(finding.address)) {
    const SharedMemory::Array& array = *shared.array_at(finding.address);
    text += fmt::format(" at byte {} of {}", access.address - shared.begin_address() - array.begin,
                        array.name());
  } else {
    const Region& region = *find_region(finding.address);
    text +=
        fmt::format(" at byte {} of allocation {}", access.address - region.begin, *region.label);
  }
  if (finding.kind == AccessVerdict::Flaw::uninitialized)
    return text + ", which no thread of the block has written";
  return text + fmt::format(", {}; nothing orders it after {}",
                            block_.describe_progress(block_.running()), describe_other(finding));
}

std::string Checker::describe_other(const AccessVerdict& finding) const {
  const Stamp& other = finding.other;
  const char* const what = verb({0, 0, finding.other_wrote, other.atomic != 0});
  if (other.segment < clock_.first_segment_of_block()) {
    const Clock::BlockStart& block = clock_.block_of(other);
    return fmt::format("the {} by block ({}, {}) thread {}", what, block.x, block.y,
                       std::uint32_t{other.thread});
  }
  const Thread& thread = block_.thread_at(static_cast<int>(other.thread));
  return fmt::format("the {} by {}, by now {}", what, block_.describe(thread),
                     block_.describe_progress(thread));
}

std::string Checker::describe_shared_bounds(const Access& access) const {
  const SharedMemory& shared = block_.shared();
  std::string text = fmt::format(
      "{} of {} bytes at byte {} of the block's shared memory", verb(access), access.bytes,
      static_cast<std::ptrdiff_t>(access.address - shared.begin_address()));
  for (const SharedMemory::Array& array : shared.arrays())
    if (array.bytes > 0)
      text += fmt::format("; {} has bytes {} to {}", array.name(), array.begin,
                          array.begin + array.bytes - 1);
  return text;
}

std::string Checker::describe_global_bounds(const Access& access, const Region* region) const {
  if (region == nullptr)
    return fmt::format("{} of {} bytes at {:#x}, which is no memory of the device", verb(access),
                       access.bytes, access.address);
  return fmt::format("{} of {} bytes at byte {} of allocation {}, which has {} bytes{}",
                     verb(access), access.bytes,
                     static_cast<std::ptrdiff_t>(access.address - region->begin), *region->label,
                     region->end - region->begin, region->freed ? " and is freed" : "");
}

void note_atomic(const void* address, std::size_t bytes, bool uses_old_value) {
  if (current == nullptr || checker == nullptr) return;
  checker->access({reinterpret_cast<std::uintptr_t>(address), bytes, true, true, uses_old_value});
}

}  // namespace plumb::device::sim
