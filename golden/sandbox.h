// SPDX-License-Identifier: Apache-2.0
//
// Golden files that nobody vouches for.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "golden/model.h"

namespace plumb::golden {

// decode() in a process of its own with limits on memory, time and files: HDF5 may crash, hang or
// ask for everything there is. What comes back is validated again. Throws GoldenError, one line.
// For a program that has no other threads at this moment.
GoldenFile decode_untrusted(std::span<const std::byte> bytes, const std::string& name);

}  // namespace plumb::golden
