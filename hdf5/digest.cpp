// SPDX-License-Identifier: Apache-2.0
#include "hdf5/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace plumb::hdf5 {

std::string digest_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string digest_of(std::string_view text) { return digest_of(std::as_bytes(std::span(text))); }

bool is_digest(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace plumb::hdf5
