// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/indexer/paged_contexts.h"

#include <fmt/format.h>

#include <algorithm>

#include "cases/ops/indexer/key_cache.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

std::vector<Parameter> paged_logits_parameters() {
  return {{"requests", 4, 1, 4096, "padded batch"},
          {"next_n", 1, 1, 16, "query rows per request"},
          {"context_lens_dims", 2, 1, 2, "1: one length per request; 2: one per row"},
          {"context_lens_gap", 0, 0, 1024, "elements between the lengths of two requests"},
          {"length", 512, 1, 1 << 24, "longest context"},
          {"length_step", 0, 0, 1 << 24, "how much shorter each further request is"},
          {"gap", 0, 0, 1 << 24, "columns behind the longest context"},
          {"heads", 64, 1, 64, "indexer heads"},
          {"page", 64, 1, 4096, "tokens of a block"},
          {"block_gap", 0, 0, 1 << 24, "bytes between two blocks, a multiple of 4"},
          {"blocks", 0, 0, 1 << 30, "of the cache; 0: what the requests need"},
          {"clean", 0, 0, 1, "1: columns from the length on are -inf; needs 1-D lengths"},
          {"far", 0, 0, 1, "1: blocks around 2^31 and 2^32 bytes into the cache"}};
}

PagedContexts::PagedContexts(const Row& row, std::int64_t block_bytes)
    : lengths(sequence_lengths(row, "context_lens_dims", "context_lens_gap")),
      pool(key_cache_blocks(row, block_bytes)),
      page(row.integer("page")) {
  if (block_bytes % 4 != 0) {
    throw BadRow(
        fmt::format("{}: a block takes {} bytes, which 4 does not divide", row.where, block_bytes));
  }
  if (row.integer("clean") != 0 && lengths.dims == 2) {
    throw BadRow(fmt::format("{}: logits by 2-D lengths cannot be clean", row.where));
  }
}

void PagedContexts::fill(const Step& step, HostTensor& context_lens, HostTensor& block_table,
                         HostTensor& cache, const KeyWriter& writer) const {
  lengths.fill(step, context_lens);
  check_blocks(pool.blocks, 1 + lengths.requests * blocks_per_request());
  for (std::int64_t block = 0; block < pool.blocks; ++block) {
    writer.poison(cache.row<std::uint8_t>(block));
  }
  const std::vector<std::int64_t> blocks = permuted_blocks(pool.blocks, mix(step.seed, 24));
  const std::int64_t width = block_table.columns();
  for (std::int64_t request = 0; request < lengths.requests; ++request) {
    auto* table = block_table.row<std::int32_t>(request);
    if (request >= step.live) {
      if (step.dead_rows != DeadRows::foreign) std::fill(table, table + width, 0);
      continue;
    }
    const std::int64_t length = lengths.of(step, request);
    const auto* own = &blocks[static_cast<std::size_t>(request * blocks_per_request())];
    const std::int64_t needed = (length + page - 1) / page;
    for (std::int64_t i = 0; i < width; ++i) {
      const std::int64_t block = i < needed ? own[i] : i % 2 == 0 ? 0 : blocks.front();
      table[i] = static_cast<std::int32_t>(pool.address(block));
    }
    for (std::int64_t position = 0; position < length; ++position) {
      writer.write(request, position, position % page,
                   cache.row<std::uint8_t>(own[position / page]));
    }
  }
}

void PagedContexts::check(const reference::PagedLogitsRows& input) const {
  for (std::int64_t row = 0; row < rows(); ++row) {
    const std::int64_t length = context_length(input, row);
    const std::int64_t pages = (length + page - 1) / page;
    const std::int64_t columns = input.clean ? input.max_context_len : input.columns;
    if (pages > input.block_table_row_stride || length > columns) {
      throw BadRow(
          fmt::format("row {} has a context of {} tokens, which its {} blocks and the {} "
                      "columns of logits do not hold",
                      row, length, input.block_table_row_stride, columns));
    }
    const std::int64_t request = row / lengths.next_n;
    const std::int32_t* blocks = input.block_table + request * input.block_table_row_stride;
    if (std::any_of(blocks, blocks + pages, [](std::int32_t block) { return block < 0; })) {
      throw BadRow(fmt::format("a block of request {} that the cache does not have", request));
    }
  }
}

ColumnRanges PagedContexts::promised_columns(const reference::PagedLogitsRows& input) const {
  ColumnRanges ranges;
  for (std::int64_t row = 0; row < rows(); ++row) {
    ranges.push_back({0, input.clean ? input.max_context_len : context_length(input, row)});
  }
  return ranges;
}

double PagedContexts::of_requests(double (*of_rows)(std::int64_t, std::int64_t, std::int64_t,
                                                    std::int64_t),
                                  std::int64_t heads, std::int64_t dim) const {
  double work = 0;
  for (std::int64_t request = 0; request < lengths.requests; ++request) {
    const std::int64_t length = lengths.length - lengths.length_step * request;
    work += of_rows(lengths.next_n, std::max<std::int64_t>(0, length), heads, dim);
  }
  return work;
}

}  // namespace plumb::cases
