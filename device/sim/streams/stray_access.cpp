// SPDX-License-Identifier: Apache-2.0
#include "device/sim/streams/stray_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "device/filler.h"
#include "device/sim/memory/freed_ranges.h"
#include "device/sim/memory/guard.h"

namespace plumb::device::sim {

namespace {

constexpr std::size_t kMostBytes = 8192;  // of arguments that are looked at
// An index that is poison may have a row or column added.
constexpr std::uint64_t kNearPoison = 1 << 16;

std::span<const std::byte> arguments_of(const Operation& operation) {
  std::span<const std::byte> bytes;
  if (const auto* kernel = std::get_if<KernelCall>(&operation)) {
    bytes = {static_cast<const std::byte*>(kernel->arguments.get()), kernel->argument_bytes};
  } else if (const auto* host = std::get_if<HostCall>(&operation)) {
    bytes = host->words;
  }
  return bytes.first(std::min(bytes.size(), kMostBytes));
}

template <class Word>
std::vector<Word> words_of(std::span<const std::byte> bytes) {
  std::vector<Word> words(bytes.size() / sizeof(Word));
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof(Word));
  return words;
}

bool is_live(const MemoryMap::Region* region, std::uintptr_t address) {
  return region != nullptr && !region->freed && address >= region->begin && address <= region->end;
}

class Arguments {
 public:
  Arguments(const Operation& operation, const Memory& memory, const Memory& pinned)
      : bytes_(arguments_of(operation)),
        words_(words_of<std::uintptr_t>(bytes_)),
        memory_(memory),
        pinned_(pinned) {}

  // Memory without a live block that an argument points to.
  std::optional<std::string> kept_pointer() const {
    for (const std::uintptr_t word : words_) {
      const MemoryMap::Region* const region = find(word);
      if (is_live(region, word)) continue;
      if (region != nullptr && region->freed) {
        return fmt::format("an argument points into '{}', which has been freed", *region->label);
      }
      // In the guard zones of a live block, addresses may come from blocks of earlier devices.
      // There an argument counts only if it is the start of a freed block.
      const auto freed = region == nullptr ? find_freed(word) : find_freed_at(word);
      if (!freed) continue;
      return fmt::format("an argument points into '{}' {}", freed->label,
                         is_of_this_device(*freed) ? "that was freed" : kOfEarlierDevice);
    }
    return std::nullopt;
  }

  // The argument from which the address is away by an index that is poison.
  std::optional<std::string> poison_as_index(std::uintptr_t address) const {
    for (const std::uintptr_t word : words_) {
      const MemoryMap::Region* const region = find(word);
      if (!is_live(region, word) || address < word) continue;
      for (const std::uint64_t bytes : {1, 2, 4, 8}) {
        const std::uint64_t index = (address - word) / bytes;
        for (const std::uint32_t poison : kPoisons) {
          if (index + kNearPoison - poison > 2 * kNearPoison) continue;
          return fmt::format("the index {:#x} into '{}' is {}", index, *region->label,
                             kReadsUnwritten);
        }
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> fillers() const {
    for (const std::uint32_t word : words_of<std::uint32_t>(bytes_)) {
      if (word == kGoneParameter * 0x1010101U) {
        return fmt::format("its arguments hold {}", kReadsGoneParameters);
      }
      if (std::ranges::find(kPoisons, word) != kPoisons.end()) {
        return fmt::format("its arguments hold {}", kReadsUnwritten);
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr std::array<std::uint32_t, 4> kPoisons{
      kFreshPoison * 0x10001U, kPinnedPoison * 0x10001U, kFreedPoison * 0x10001U,
      kHugePoison * 0x1010101U};

  const MemoryMap::Region* find(std::uintptr_t address) const {
    const MemoryMap::Region* const region = memory_.find(address);
    return region != nullptr ? region : pinned_.find(address);
  }
  bool is_of_this_device(const FreedRange& range) const {
    return range.memory == memory_.number() || range.memory == pinned_.number();
  }

  std::span<const std::byte> bytes_;
  std::vector<std::uintptr_t> words_;
  const Memory& memory_;
  const Memory& pinned_;
};

}  // namespace

DeviceError explain_by_arguments(const DeviceError& found, std::uintptr_t address,
                                 const Operation& operation, const Memory& memory,
                                 const Memory& pinned) {
  const Arguments arguments(operation, memory, pinned);
  const auto with = [&](ErrorKind kind, const std::string& cause) {
    return DeviceError(kind, fmt::format("{}; {}", found.what(), cause));
  };
  if (const auto cause = arguments.kept_pointer()) return with(ErrorKind::use_after_free, *cause);
  if (const auto cause = arguments.poison_as_index(address)) return with(found.kind(), *cause);
  if (const auto cause = arguments.fillers()) return with(found.kind(), *cause);
  return found;
}

}  // namespace plumb::device::sim
