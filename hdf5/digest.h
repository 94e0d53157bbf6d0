// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace plumb::hdf5 {

// XXH3-128 as 32 hexadecimal digits, in the order in which xxhsum prints it.
std::string digest_of(std::span<const std::byte> bytes);
std::string digest_of(std::string_view text);

bool is_digest(std::string_view text);

}  // namespace plumb::hdf5
