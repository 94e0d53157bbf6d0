// SPDX-License-Identifier: Apache-2.0
//
// Guard zones in front of and behind every allocation, verified by a kernel, so that only a damaged
// one travels to the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/gpu/launch.h"

namespace plumb::device::PLUMB_GPU {

struct GuardZone {
  std::uint8_t* begin = nullptr;
  std::size_t bytes = 0;
};

inline constexpr std::uint8_t kGuardByte = 0xa5;

// zones: device memory, `count` > 0 of them. Adds to damaged[i] the number of bytes of zone i that
// differ.
plumb_status count_damage(const GuardZone* zones, int count, std::uint32_t* damaged,
                          plumb_stream stream);

}  // namespace plumb::device::PLUMB_GPU
