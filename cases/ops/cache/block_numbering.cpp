// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/cache/block_numbering.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "cases/tables/row.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

std::int64_t BlockNumbering::address(std::int64_t block) const {
  if (!far || block == 0) return block;
  const std::int64_t near = blocks / 2;
  const std::int64_t past = block < near ? std::int64_t{1} << 31 : std::int64_t{1} << 32;
  return past / block_bytes - 1 + (block < near ? block - 1 : block - near);
}

std::int64_t BlockNumbering::block_at(std::int64_t number) const {
  if (!far) return number >= 0 && number < blocks ? number : -1;
  for (std::int64_t block = 0; block < blocks; ++block) {
    if (address(block) == number) return block;
  }
  return -1;
}

void BlockNumbering::place(TensorSpec& spec) const {
  spec.sparse |= far;
  for (std::int64_t block = 0; far && block < blocks; ++block) {
    spec.placement.push_back(address(block));
  }
}

void check_blocks(std::int64_t blocks, std::int64_t needed) {
  if (blocks < needed) {
    throw BadRow(fmt::format("a cache of {} blocks: its tokens need {}", blocks, needed));
  }
}

std::vector<std::int64_t> permuted_blocks(std::int64_t blocks, std::uint64_t seed) {
  std::vector<std::int64_t> table(static_cast<std::size_t>(blocks - 1));
  std::iota(table.begin(), table.end(), 1);
  for (std::size_t i = table.size(); i > 1; --i) {
    const std::int64_t other = integer(seed, i, 0, static_cast<std::int64_t>(i) - 1);
    std::swap(table[i - 1], table[static_cast<std::size_t>(other)]);
  }
  return table;
}

}  // namespace plumb::cases
