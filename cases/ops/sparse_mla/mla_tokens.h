// SPDX-License-Identifier: Apache-2.0
//
// Paged latent caches, and workspaces of bf16 rows, for attention cases. Every byte that must not
// be used is NaN in its format: slots that no row names, the pad byte of each row of scales, the
// padding of each block, block 0, and the rows behind those that an op knows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tensors/tensor.h"
#include "reference/cache/kv_cache.h"

namespace plumb::cases {

// One cache. A sequence owns `context` tokens in blocks of its own. No sequence owns block 0.
struct MlaCacheShape {
  std::int64_t page = 64, context = 0, sequences = 1;
  reference::Dialect dialect = reference::Dialect::e4m3fn;
  reference::KvLayout layout = reference::KvLayout::v4;
  reference::ScaleReading scale_reading = reference::ScaleReading::fp32;  // v32 only
  reference::ScaleWriting scale_writing = reference::ScaleWriting::fp32;  // v32 only
  std::int64_t row_dims = reference::kMlaDim;                             // rows: dims of k
  std::int64_t given_blocks = 0;  // blocks of the cache; 0: as many as needed
  std::int64_t gap = 0;           // between blocks: tokens of v32, elements of rows
  // v4: adversarial tokens have all codes, NaN too, and all scales except for 2^-127 and NaN.
  bool every_code = false;
  // Blocks lie around 2^31 and 2^32 bytes into a sparse region, otherwise side by side.
  bool far = false;

  std::int64_t blocks_per_sequence() const { return (context + page - 1) / page; }
  std::int64_t needed_blocks() const { return 1 + sequences * blocks_per_sequence(); }
  std::int64_t blocks() const { return given_blocks != 0 ? given_blocks : needed_blocks(); }
  std::int64_t blocks_that_exist() const;  // blocks(), and two rows behind a workspace
  std::int64_t block_bytes() const;        // with the gap
  std::int64_t key_dims() const;
  std::int64_t address(std::int64_t block) const;   // number of a block on the device
  std::int64_t num_blocks() const;                  // number of blocks that the op gets
  std::int64_t pool_slot(std::int64_t slot) const;  // slot on the host of a slot on the device
};

// The cache of one step. All of it is NaN at first; use() writes the tokens that rows name.
class MlaCache {
 public:
  MlaCache(const MlaCacheShape& shape, const Step& step, std::uint64_t seed, HostTensor& bytes);

  // Slot of a token on the device. Writes the token on first use.
  std::int32_t use(std::int64_t sequence, std::int64_t position);
  // A slot full of NaN, of block 0.
  std::int32_t unused(std::uint64_t salt) const;

 private:
  void write(std::int64_t pool_slot, std::int64_t sequence);
  void write_values(std::uint8_t* block, std::int64_t offset,
                    std::span<const float, reference::kV32Dim> values);
  std::uint8_t* block_start(std::int64_t block);
  std::uint8_t* v4_scales(std::uint8_t* block, std::int64_t offset) const;

  const MlaCacheShape& shape_;
  const Step& step_;
  std::uint64_t seed_;
  HostTensor& bytes_;
  std::vector<std::int64_t> block_table_;  // [sequences, blocks_per_sequence], permuted
  std::vector<bool> written_;
};

// Approximate root mean square of the values of a sequence's tokens.
double typical_value(const Step& step, std::int64_t sequence);

}  // namespace plumb::cases
