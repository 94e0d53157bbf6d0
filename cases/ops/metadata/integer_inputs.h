// SPDX-License-Identifier: Apache-2.0
//
// Inputs and verdicts of ops whose tensors are integers: block tables, query layouts, what stands
// where nobody may look, and ragged buffers.
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

// Rows [begin, end) of an i32 tensor that mean nothing: 0, -1, the largest or the smallest number;
// `foreign` leaves them as they are.
void fill_dead_integers(HostTensor& tensor, std::int64_t begin, std::int64_t end, DeadRows how);
// What earlier steps may have left in a persistent buffer: -1, the largest number, or numbers as
// plausible as the right ones; the seed chooses.
void fill_before(HostTensor& tensor, std::uint64_t seed);

// A block table [requests, columns]. Exact: blocks in order; real: all over a pool; adversarial:
// the highest blocks whose slots are int32. Gaps hold blocks too: the table is a view of a wider
// one.
struct BlockTableShape {
  std::int64_t requests = 1, columns = 1, gap = 0, block_size = 64;

  std::int64_t row_stride() const { return columns + gap; }
  std::int64_t positions() const { return columns * block_size; }  // of one request
  reference::BlockTable reference(const TensorSet& tensors) const;
};
// Throws BadRow for a table of which a slot, block * block_size, would not be an int32.
void require_int32_slots(const BlockTableShape& shape, const std::string& where);
// Rows from `live` on belong to nobody.
void fill_block_table(const BlockTableShape& shape, const Step& step, std::int64_t live,
                      TensorSet& tensors);

// Query tokens of requests: query_start_loc and seq_lens. Dead requests are empty, of length 0.
struct QueryShape {
  std::int64_t requests = 1, queries = 1;  // most query tokens of a request
  std::int64_t context = 1;                // longest sequence
  std::int64_t first = 0;                  // query_start_loc[0]
  bool ragged = false;                     // requests with fewer tokens, also none
  bool dummies = false;                    // under adversarial fills: tokens of a sequence of 0
  std::vector<std::int64_t> edges = {};    // lengths at which something turns
  std::int64_t given_tokens = -1;          // of the call; -1: those of full requests

  std::int64_t tokens() const { return given_tokens >= 0 ? given_tokens : requests * queries; }
  reference::QueryLayout reference(const TensorSet& tensors) const;
};
void fill_queries(const QueryShape& shape, const Step& step, TensorSet& tensors);

// Is a live token one of the batch (slot_mapping, is_valid_token)? Never so for padding; under
// exact fills always, else not for one in seven.
bool is_batch_token(const Step& step, std::int64_t token, std::int64_t live_tokens);
void fill_slot_mapping(const Step& step, std::int64_t live_tokens, HostTensor& slot_mapping);

// Lengths in [0, most] of `count` rows, 0 from `live` on. Exact: all `most`; real: any;
// adversarial: 0, 1 and around `most`.
std::vector<std::int64_t> live_lengths(const Step& step, std::int64_t count, std::int64_t live,
                                       std::int64_t most);

// Elements in row-major order.
std::vector<std::int64_t> integers_of(const HostTensor& tensor);
void store_integers(const std::vector<std::int64_t>& values, HostTensor& tensor);
// `front` over the beginning of what `before` holds.
std::vector<std::int64_t> front_over(const std::vector<std::int64_t>& front,
                                     const HostTensor& before);
// Ranges of a ragged list that somebody else made, before it is read by them: each of at most
// `most` of so many entries.
Expectation expect_ranges(const HostTensor& indptr, std::int64_t entries, std::int64_t most);
// A ragged buffer. Its report also says which rows own the wrong entries. `noun`: of one of them.
Expectation expect_ragged(const HostTensor& flat, std::vector<std::int64_t> values,
                          std::vector<std::int64_t> indptr, std::string_view noun);

// Simulated work of a block per row of `columns` elements, and of one block over `rows` rows.
double row_blocks_cost(std::int64_t rows, std::int64_t columns);
double indptr_cost(std::int64_t rows);

}  // namespace plumb::cases
