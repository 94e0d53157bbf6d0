// SPDX-License-Identifier: Apache-2.0
//
// Inputs and verdicts of ops on integer tensors: block tables, query layouts, padding, stale
// contents of persistent buffers, and ragged lists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cases/judge/expectation.h"
#include "cases/tables/problem.h"
#include "cases/tensors/tensor.h"
#include "reference/metadata/block_table.h"

namespace plumb::cases {

// Fills padding, rows [begin, end) of an i32 tensor, with 0, -1, the largest or the smallest
// number. `foreign` leaves them as they are.
void fill_dead_integers(HostTensor& tensor, std::int64_t begin, std::int64_t end, DeadRows how);
// Fills a persistent buffer as earlier steps may have left it: with -1, the largest number, or
// plausible numbers. The seed chooses which.
void fill_before(HostTensor& tensor, std::uint64_t seed);

// A block table [requests, columns]. Exact fill: blocks in order. Real: blocks from all over a
// pool. Adversarial: the highest blocks whose slots fit into int32. Gaps hold blocks too, since the
// table may be a slice of a wider one.
struct BlockTableShape {
  std::int64_t requests = 1, columns = 1, gap = 0, block_size = 64;
  std::int64_t first_block = 0;  // added to each block number
  std::string tensor = "block_table";

  std::int64_t row_stride() const { return columns + gap; }
  std::int64_t positions() const { return columns * block_size; }  // of one request
  reference::BlockTable reference(const TensorSet& tensors) const;
};
// Throws BadRow if block numbers of the table could exceed int32.
void require_int32_blocks(const BlockTableShape& shape, const std::string& where);
// Throws BadRow if slots of the table (block * block_size + offset) could exceed int32.
void require_int32_slots(const BlockTableShape& shape, const std::string& where);
// Rows from `live` on are padding.
void fill_block_table(const BlockTableShape& shape, const Step& step, std::int64_t live,
                      TensorSet& tensors);

// Query tokens of requests: query_start_loc and seq_lens. Dead requests have no tokens and
// length 0.
struct QueryShape {
  std::int64_t requests = 1, queries = 1;  // most query tokens of a request
  std::int64_t context = 1;                // longest sequence
  std::int64_t first = 0;                  // query_start_loc[0]
  bool ragged = false;                     // requests may have fewer tokens, or none
  bool dummies = false;                    // adversarial fill: some requests have seq_len 0
  std::vector<std::int64_t> edges = {};    // sequence lengths at which results change
  std::int64_t given_tokens = -1;          // of the call; -1: those of full requests
  std::int64_t decodes = 0;                // the first requests, which are not ragged
  std::int64_t decode_queries = 1;         // query tokens of each of them

  std::int64_t tokens() const { return given_tokens >= 0 ? given_tokens : requests * queries; }
  reference::QueryLayout reference(const TensorSet& tensors) const;
};
void fill_queries(const QueryShape& shape, const Step& step, TensorSet& tensors);

// True if a token belongs to the batch (slot_mapping, is_valid_token). Padding never does. Exact
// fill: all live tokens do. Other fills: all but one in seven.
bool is_batch_token(const Step& step, std::int64_t token, std::int64_t live_tokens);
void fill_slot_mapping(const Step& step, std::int64_t live_tokens, HostTensor& slot_mapping);

// Lengths in [0, most] of `count` rows; 0 from `live` on. Exact fill: all are `most`. Real: random.
// Adversarial: 0, 1 and around `most`.
std::vector<std::int64_t> live_lengths(const Step& step, std::int64_t count, std::int64_t live,
                                       std::int64_t most);

// Elements in row-major order.
std::vector<std::int64_t> integers_of(const HostTensor& tensor);
void store_integers(const std::vector<std::int64_t>& values, HostTensor& tensor);
// The contents of `before`, with its beginning replaced by `front`.
std::vector<std::int64_t> front_over(const std::vector<std::int64_t>& front,
                                     const HostTensor& before);
// Expects `values`. Any negative number is right where the value is reference::kAnyNegative.
Expectation expect_slots(const HostTensor& stored, std::vector<std::int64_t> values,
                         RowMask promised);
// Checks the indptr of a recorded call before it is used to read the list: each range has at most
// `most` of the `entries` entries.
Expectation expect_ranges(const HostTensor& indptr, std::int64_t entries, std::int64_t most);
// Expects `values` in a ragged list. The report also says which rows own the wrong entries. `noun`:
// what the report calls a row.
Expectation expect_ragged(const HostTensor& flat, std::vector<std::int64_t> values,
                          std::vector<std::int64_t> indptr, std::string_view noun);

// Simulated work of one block of threads for each row of `columns` elements, and of one block that
// scans `rows` rows.
double row_blocks_cost(std::int64_t rows, std::int64_t columns);
double indptr_cost(std::int64_t rows);

}  // namespace plumb::cases
