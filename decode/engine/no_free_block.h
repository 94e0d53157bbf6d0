// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace plumb::device::decode {

// Thrown if requests own all blocks of a cache.
class NoFreeBlock : public std::runtime_error {
 public:
  NoFreeBlock() : std::runtime_error("no block of the cache is free") {}
};

}  // namespace plumb::device::decode
