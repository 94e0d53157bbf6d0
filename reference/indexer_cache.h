// SPDX-License-Identifier: Apache-2.0
//
// The paged cache of indexer keys: a block holds the fp8 values of all its tokens, then one fp32
// scale per token, page * (dim + 4) bytes in all.
#pragma once

#include <cstdint>

namespace plumb::reference {

enum class IndexerLayout {
  planar,   // values [page, dim]
  shuffled  // values [page / 16, dim / 16, 16 tokens, 16 dims]
};

struct IndexerBlock {
  std::int64_t page = 1, dim = 128;
  IndexerLayout layout = IndexerLayout::planar;

  std::int64_t bytes() const { return page * (dim + 4); }
  // Bytes from the start of a block to a value, and to the scale of a token.
  std::int64_t value_at(std::int64_t token, std::int64_t d) const;
  std::int64_t scale_at(std::int64_t token) const { return page * dim + 4 * token; }
};

}  // namespace plumb::reference
