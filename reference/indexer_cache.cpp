// SPDX-License-Identifier: Apache-2.0
#include "reference/indexer_cache.h"

namespace plumb::reference {

std::int64_t IndexerBlock::value_at(std::int64_t token, std::int64_t d) const {
  if (layout == IndexerLayout::planar) return token * dim + d;
  constexpr std::int64_t kTile = 16;
  const std::int64_t tile = token / kTile * (dim / kTile) + d / kTile;
  return (tile * kTile + token % kTile) * kTile + d % kTile;
}

}  // namespace plumb::reference
