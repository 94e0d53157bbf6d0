// SPDX-License-Identifier: Apache-2.0
//
// Guard zones in front of and behind every allocation. A kernel checks them on the device, so that
// only damaged zones are copied to the host.
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

// Adds the number of damaged bytes of zone i to damaged[i]. `zones` and `damaged`: device memory,
// `count` > 0 elements.
plumb_status count_damage(const GuardZone* zones, int count, std::uint32_t* damaged,
                          plumb_stream stream);

}  // namespace plumb::device::PLUMB_GPU
