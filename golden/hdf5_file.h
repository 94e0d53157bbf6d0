// SPDX-License-Identifier: Apache-2.0
//
// A golden file as the bytes of an HDF5 file (docs/goldens.md has the schema), made and read in
// memory.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "golden/model.h"

namespace plumb::golden {

// Equal contents give equal bytes with the same versions of HDF5 and zlib.
std::vector<std::byte> encode(const GoldenFile& file);

// Throws GoldenError, one line that begins with `name`, for bytes that are anything else than a
// whole file of this schema: every object is looked at before it is read, every number before it is
// used, every digest recomputed. HDF5 itself may crash on bytes made for that: what nobody vouches
// for goes through golden/sandbox.h.
GoldenFile decode(std::span<const std::byte> bytes, std::string_view name);

}  // namespace plumb::golden
