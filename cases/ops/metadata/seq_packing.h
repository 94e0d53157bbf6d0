// SPDX-License-Identifier: Apache-2.0
//
// What the cases of pack_seq and unpack_seq share. Rows are copied, so that results are compared
// bit for bit, whatever their format.
#pragma once

#include "cases/ops/metadata/integer_inputs.h"
#include "cases/tables/problem.h"
#include "cases/tables/row.h"

namespace plumb::cases {

struct SeqPackingShape {
  explicit SeqPackingShape(const Row& row);

  std::int64_t sequences, max_length, columns, gap, tokens;
  Dtype dtype;

  TensorSpec flat(std::string name) const;    // [tokens, columns] with gaps
  TensorSpec packed(std::string name) const;  // [sequences, max_length, columns]
  std::int64_t row_stride() const { return columns + gap; }
  std::uint32_t pad_bits() const;  // -inf; -1 in i32; 0 in bytes, which have no infinity
  double cost() const;
};

// seq_packing parameters and the word "dtype".
void describe_seq_packing(OpDefinition& op);

std::vector<std::int64_t> fill_seq_lengths(const SeqPackingShape& shape, const Step& step,
                                           HostTensor& lengths);
// Rows [begin, end): any bits, no two rows alike.
void fill_bits(HostTensor& tensor, std::int64_t begin, std::int64_t end, std::uint64_t seed);
// Rows that no live sequence owns.
void fill_dead_bits(HostTensor& tensor, std::int64_t begin, std::int64_t end, DeadRows how);
void copy_row(const HostTensor& from, std::int64_t from_row, HostTensor& to, std::int64_t to_row);

}  // namespace plumb::cases
