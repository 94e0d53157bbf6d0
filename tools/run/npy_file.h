// SPDX-License-Identifier: Apache-2.0
//
// Arrays as numpy.load reads them: the format's version 1, little-endian, rows first.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plumb::tools {

// `type` is numpy's: "<f8", "|u1". Throws std::runtime_error: "cannot write PATH: why".
void write_npy(const std::string& path, std::string_view type,
               const std::vector<std::int64_t>& shape, std::span<const std::byte> elements);

}  // namespace plumb::tools
