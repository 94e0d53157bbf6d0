// SPDX-License-Identifier: Apache-2.0
//
// Writes arrays in numpy's format (version 1, little-endian, row-major), for numpy.load.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plumb::tools {

// `type`: numpy's type, such as "<f8", "|u1". Throws std::runtime_error: "cannot write PATH: why".
void write_npy(const std::string& path, std::string_view type,
               const std::vector<std::int64_t>& shape, std::span<const std::byte> elements);

}  // namespace plumb::tools
