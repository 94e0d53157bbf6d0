// SPDX-License-Identifier: Apache-2.0
//
// What the arguments of a kernel tell about a bad address that it used: a pointer that was kept, an
// index or size that plumb wrote, and not a wrong index.
#pragma once

#include <cstdint>
#include <string>

#include "device/sim/memory/memory.h"
#include "device/sim/streams/operation.h"

namespace plumb::device::sim {

// The error `found` of an access to `address`, with the cause if the arguments show it.
DeviceError explain_by_arguments(const DeviceError& found, std::uintptr_t address,
                                 const Operation& operation, const Memory& memory,
                                 const Memory& pinned);

}  // namespace plumb::device::sim
