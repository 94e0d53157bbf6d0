// SPDX-License-Identifier: Apache-2.0
//
// Reads untrusted golden files.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "golden/model.h"

namespace plumb::golden {

// decode() in a child process with limits on memory, time and files, because HDF5 may crash, hang
// or exhaust memory. The result is validated again. Throws GoldenError, one line. The calling
// program may have no other threads at this moment.
GoldenFile decode_untrusted(std::span<const std::byte> bytes, const std::string& name);

}  // namespace plumb::golden
