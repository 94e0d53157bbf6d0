// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace plumb::hdf5 {

// XXH3-128 as 32 hexadecimal digits, in the order in which xxhsum prints it.
std::string digest_of(std::span<const std::byte> bytes);
std::string digest_of(std::string_view text);

// Computes the XXH3-128 digest of bytes that are added in parts.
class DigestOfParts {
 public:
  DigestOfParts();
  ~DigestOfParts();
  void add(std::span<const std::byte> part);
  std::string digits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

bool is_digest(std::string_view text);

}  // namespace plumb::hdf5
