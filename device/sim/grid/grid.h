// SPDX-License-Identifier: Apache-2.0
//
// A launch in progress. It runs on one host thread, in pieces. Between these the thread may run
// pieces of other launches.
#pragma once

#include <cstdint>
#include <memory>

#include "device/sim/launch.h"

namespace plumb::device::sim {

class Block;

// Yields the blocks of a grid one after the other. Random order is a permutation without a table:
// four rounds of a Feistel network on the smallest even number of bits that holds the count,
// repeated while the result is not a block.
class BlockOrder {
 public:
  BlockOrder(const Conditions& conditions, std::int64_t count);
  std::int64_t next();
  bool at_end() const { return position_ == count_; }

 private:
  std::int64_t permute(std::int64_t value) const;

  Order order_;
  std::uint64_t seed_;
  std::int64_t count_, position_ = 0;
  int half_bits_ = 1;
};

class Grid {
 public:
  // Throws launch_limits. `call` has to outlive the grid.
  Grid(const KernelCall& call, const Properties& properties, const Conditions& conditions,
       const MemoryMap& memory);
  ~Grid();
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  // Runs a piece: the whole launch, or on an interleaving device a block up to its next pause.
  // Returns true after the last piece. Throws DeviceError for anything that a kernel may not do.
  bool advance();

 private:
  bool is_over() const { return order_.at_end() && !in_block_; }

  std::int64_t columns_;
  BlockOrder order_;
  bool interleaved_;
  bool in_block_ = false;  // a block has begun and not ended
  std::unique_ptr<Block> block_;
};

}  // namespace plumb::device::sim
