// SPDX-License-Identifier: Apache-2.0
//
// Golden files as bytes of HDF5 files (docs/goldens.md has the schema), written and read in memory.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "golden/model.h"

namespace plumb::golden {

// Equal contents give equal bytes if the versions of HDF5 and zlib are equal.
std::vector<std::byte> encode(const GoldenFile& file);

// Throws GoldenError, one line that begins with `name`, unless the bytes are a complete file of
// this schema. Objects are checked before they are read, numbers before they are used, and all
// digests are recomputed. HDF5 itself may crash on malicious bytes, so untrusted files must be read
// through golden/sandbox.h.
GoldenFile decode(std::span<const std::byte> bytes, std::string_view name);

}  // namespace plumb::golden
