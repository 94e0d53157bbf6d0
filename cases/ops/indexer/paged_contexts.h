// SPDX-License-Identifier: Apache-2.0
//
// What the cases of both logits ops over a paged cache share: requests with next_n query rows each,
// whose tokens lie in blocks that are permuted anew in every step. Every byte of the cache that
// belongs to no token is poison, and so is all of block 0. Table entries that no token needs name
// block 0 or a block of another request.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cases/ops/cache/block_numbering.h"
#include "cases/ops/metadata/sequence_lengths.h"
#include "cases/tables/formula.h"
#include "cases/tables/row.h"
#include "cases/tensors/step.h"
#include "cases/tensors/tensor.h"
#include "reference/indexer/paged_logits_rows.h"

namespace plumb::cases {

inline constexpr std::int64_t kSpareBlocks = 3;  // entries of a block table that no token needs

// Parameters of their rows, except for `dim` and those of only one of the ops.
std::vector<Parameter> paged_logits_parameters();

class PagedContexts {
 public:
  // Bytes of a block of the cache that belong to no token, and of the token at a position.
  // Positions count from the begin of the request, `token` from that of the block.
  struct KeyWriter {
    std::function<void(std::uint8_t* block)> poison;
    std::function<void(std::int64_t request, std::int64_t position, std::int64_t token,
                       std::uint8_t* block)>
        write;
  };

  PagedContexts(const Row& row, std::int64_t block_bytes);

  // Fills lengths, block tables and cache.
  void fill(const Step& step, HostTensor& context_lens, HostTensor& block_table, HostTensor& cache,
            const KeyWriter& writer) const;

  // Sets what the parameters of both ops have in common.
  template <class Params>
  void set_rows(const Params& p, const TensorSet& tensors,
                reference::PagedLogitsRows& input) const {
    input.weights = tensors.at("weights").data<float>();
    input.context_lens = tensors.at("context_lens").data<std::int32_t>();
    input.context_lens_row_stride = p.context_lens_row_stride;
    input.context_lens_dims = p.context_lens_dims;
    input.cache = tensors.at("cache").data<std::uint8_t>();
    input.block_stride_bytes = pool.block_bytes;
    input.block_table_row_stride = p.block_table_row_stride;
    input.requests = p.requests;
    input.next_n = p.next_n;
    input.heads = p.heads;
    input.dim = p.dim;
    input.max_context_len = p.max_context_len;
    input.columns = p.logits_row_stride;
    input.clean = p.clean_logits != 0;
  }

  // Throws BadRow if a row of a recorded call needs blocks or columns that do not exist.
  void check(const reference::PagedLogitsRows& input) const;
  // Columns that the op promises of each row.
  ColumnRanges promised_columns(const reference::PagedLogitsRows& input) const;

  // Sum over requests of a cost of logits (indexer_inputs.h).
  double of_requests(double (*of_rows)(std::int64_t, std::int64_t, std::int64_t, std::int64_t),
                     std::int64_t heads, std::int64_t dim) const;

  std::int64_t rows() const { return lengths.requests * lengths.next_n; }

  SequenceLengths lengths;
  BlockNumbering pool;
  std::int64_t page;

 private:
  std::int64_t blocks_per_request() const { return (lengths.length + page - 1) / page; }
};

}  // namespace plumb::cases
