// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/indexer/key_cache.h"

#include "cases/tables/dialect.h"

namespace plumb::cases {

BlockNumbering key_cache_blocks(const Row& row, std::int64_t block_bytes) {
  const std::int64_t page = row.integer("page"), given = row.integer("blocks");
  const std::int64_t needed =
      1 + row.integer("requests") * ((row.integer("length") + page - 1) / page);
  return {.blocks = given != 0 ? given : needed,
          .block_bytes = block_bytes,
          .far = row.integer("far") != 0};
}

KeyCacheBlocks key_cache_blocks(const Formula& block_bytes) {
  const Formula numbered = computed("blocks", [=](const FormulaValues& values) {
    return key_cache_blocks(*values.row, block_bytes.value(values)).num_blocks();
  });
  const Formula of_case = computed("blocks", [](const FormulaValues& values) {
    return key_cache_blocks(*values.row, 0).blocks;
  });
  const Formula given = parameter("blocks");
  return {in_call(numbered, given), in_call(of_case, given)};
}

void add_key_cache(TablePart<plumb_paged_cache> cache, const Formula& block_bytes) {
  using C = plumb_paged_cache;
  const Formula bytes = cache.scalar("block_stride_bytes", &C::block_stride_bytes, block_bytes);
  cache.word("dialect", &C::dialect, dialect_words("dialect"));
  const KeyCacheBlocks blocks = key_cache_blocks(bytes);
  cache.scalar("num_blocks", &C::num_blocks, blocks.in_call);
  cache.input("data", &C::data, {blocks.of_case, bytes}, "codes, then one scale per token")
      .named("cache");
}

std::vector<std::int32_t> host_block_table(const BlockNumbering& blocks,
                                           const HostTensor& block_table) {
  std::vector<std::int32_t> table;
  for (std::int64_t row = 0; row < block_table.rows(); ++row) {
    const auto* on_device = block_table.row<std::int32_t>(row);
    for (std::int64_t i = 0; i < block_table.columns(); ++i) {
      table.push_back(static_cast<std::int32_t>(blocks.block_at(on_device[i])));
    }
  }
  return table;
}

}  // namespace plumb::cases
