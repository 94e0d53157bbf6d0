// SPDX-License-Identifier: Apache-2.0
//
// Shared by the cases of pack_seq and unpack_seq. These ops copy rows, so that results are compared
// bit for bit in every dtype.
#pragma once

#include "cases/ops/metadata/metadata_members.h"

namespace plumb::cases {

struct SeqPackingMembers {
  Formula sequences, max_length, columns, tokens;
};
template <class P>
SeqPackingMembers add_seq_packing(TablePart<P>& t) {
  const Formula sequences = t.scalar("sequences", &P::sequences);
  const Formula max_length = t.scalar("max_length", &P::max_length);
  const Formula columns = t.scalar("columns", &P::columns);
  const Formula full = sequences * max_length + parameter("more_tokens");
  return {sequences, max_length, columns,
          t.scalar("tokens", &P::tokens, unless_negative(parameter("tokens"), full))};
}
WordChoices element_bytes();  // by the word "dtype"
Formula packed_dtype();       // the Dtype that this word names

// Sets the parameters of both ops, and the word "dtype".
void describe_seq_packing(OpDefinition& op);

// Chooses, stores and returns the lengths. Throws BadRow if they need more rows than `tokens`.
std::vector<std::int64_t> fill_seq_lengths(std::int64_t max_length, std::int64_t tokens,
                                           const Step& step, HostTensor& lengths);
// Fills rows [begin, end) with random bits, so that no two rows are alike.
void fill_bits(HostTensor& tensor, std::int64_t begin, std::int64_t end, std::uint64_t seed);
// Fills rows [begin, end), which no live sequence owns, as `how` says.
void fill_dead_bits(HostTensor& tensor, std::int64_t begin, std::int64_t end, DeadRows how);
void copy_row(const HostTensor& from, std::int64_t from_row, HostTensor& to, std::int64_t to_row);
// Simulated work of `sequences` sequences of `elements` elements each.
double seq_packing_cost(std::int64_t sequences, std::int64_t elements);

}  // namespace plumb::cases
