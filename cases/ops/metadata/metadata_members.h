// SPDX-License-Identifier: Apache-2.0
//
// Members that the tables of several metadata ops share.
#pragma once

#include "cases/ops/metadata/integer_inputs.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"

namespace plumb::cases {

template <class P>
void add_queries(TablePart<P>& t, const Formula& requests) {
  t.input("query_start_loc", &P::query_start_loc, {requests + 1, 1}, "first token of each request");
  t.input("seq_lens", &P::seq_lens, {requests, 1}, "tokens of each sequence");
}

// Rows of a block table. A recorded call does not say which requests its tokens belong to, so that
// its table has a row for every request that they could belong to.
inline Formula requests_of_tokens(const Formula& tokens, const Formula& of_case) {
  return in_call(of_case, least(tokens, limit(&EngineLimits::requests, "requests")));
}

// For a recorded call, `columns` or `table_gap` has to be given before: the call only has their
// sum.
template <class P>
void add_block_table(TablePart<P>& t, const Formula& requests, const Formula& columns) {
  const Formula stride = t.scalar("block_table_row_stride", &P::block_table_row_stride,
                                  columns + parameter("table_gap"));
  t.input("block_table", &P::block_table, {requests, columns}, "blocks of each request")
      .strides({stride, 1});
}

// Rows of a buffer that outlives the step. A recorded call does not say how many rows there are
// behind those of the step, so that it counts as having none.
template <class P>
Formula buffer_rows(TablePart<P>& t, const Formula& rows, const std::string& more) {
  t.given(parameter(more), 0);
  return rows + parameter(more);
}

}  // namespace plumb::cases
