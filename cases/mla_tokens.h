// SPDX-License-Identifier: Apache-2.0
//
// Paged V4 caches for attention cases. Every byte that no row may read is NaN in its format: slots
// that nobody references, the pad byte of each scale row, the padding of each block, and block 0.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cases/block_pool.h"
#include "cases/problem.h"
#include "cases/tensor.h"
#include "reference/kv_cache.h"

namespace plumb::cases {

// One cache. A sequence owns `context` tokens in blocks of its own; block 0 belongs to nobody.
struct MlaCacheShape {
  std::int64_t page = 64, context = 0, sequences = 1;
  reference::Dialect dialect = reference::Dialect::e4m3fn;
  // Blocks lie around 2^31 and 2^32 bytes into a sparse region, else side by side.
  bool far = false;

  std::int64_t blocks_per_sequence() const { return (context + page - 1) / page; }
  std::int64_t blocks() const { return 1 + sequences * blocks_per_sequence(); }  // that exist
  std::int64_t block_bytes() const { return reference::kv_block_bytes(page); }
  BlockPool pool() const { return {blocks(), block_bytes(), far}; }
  std::int64_t address(std::int64_t block) const { return pool().address(block); }
  std::int64_t num_blocks() const { return pool().num_blocks(); }
  std::int64_t pool_slot(std::int64_t slot) const;  // a device's slot, in the host's blocks
  TensorSpec spec(std::string name) const { return pool().spec(std::move(name)); }
};

// The cache of one step: all NaN, until a token is asked for.
class MlaCache {
 public:
  MlaCache(const MlaCacheShape& shape, const Step& step, std::uint64_t seed, HostTensor& bytes);

  // Device's slot of a token, written on first use.
  std::int32_t use(std::int64_t sequence, std::int64_t position);
  // A slot full of NaN.
  std::int32_t unused(std::uint64_t salt) const;

 private:
  void write(std::int64_t pool_slot, std::int64_t sequence);

  const MlaCacheShape& shape_;
  const Step& step_;
  std::uint64_t seed_;
  HostTensor& bytes_;
  std::vector<std::int64_t> block_table_;  // [sequences, blocks_per_sequence], permuted
  std::vector<bool> written_;
};

// Root mean square of the values of a sequence's tokens, roughly.
double typical_value(const Step& step, std::int64_t sequence);

}  // namespace plumb::cases
