// SPDX-License-Identifier: Apache-2.0
//
// Maps the blocks of a paged cache on the host to block numbers on the device: side by side, or
// around 2^31 and 2^32 bytes into a sparse region. Block 0 belongs to no request.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/tensors/tensor.h"

namespace plumb::cases {

struct BlockNumbering {
  std::int64_t blocks = 1, block_bytes = 0;
  bool far = false;

  std::int64_t address(std::int64_t block) const;     // block number on the device
  std::int64_t block_at(std::int64_t address) const;  // block on the host; -1: none
  std::int64_t num_blocks() const { return address(blocks - 1) + 1; }  // blocks on the device
  void place(TensorSpec& spec) const;  // puts each block at its address
};

// Throws BadRow if a cache has fewer blocks than its tokens need.
void check_blocks(std::int64_t blocks, std::int64_t needed);

// The blocks [1, blocks) in an order that depends on the seed.
std::vector<std::int64_t> permuted_blocks(std::int64_t blocks, std::uint64_t seed);

}  // namespace plumb::cases
