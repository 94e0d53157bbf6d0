// SPDX-License-Identifier: Apache-2.0
//
// The table of an op that is declared while the program runs. Its struct has sizes, strides, reals,
// pointers and the stream, in this order.
#pragma once

#include <memory>
#include <string>

#include "cases/own_op/own_op.h"
#include "cases/tables/op_table.h"

namespace plumb::cases {

inline constexpr const char* kOwnRowGap = "row_gap";  // elements between rows of inputs
inline constexpr const char* kOwnOutGap = "out_gap";  // and of outputs

// "4*hidden", "width-1" over the sizes of the op. Throws BadRow, which names `what`.
Formula own_size(const OwnOp& op, const std::string& text, const std::string& what);

// Throws BadRow.
std::unique_ptr<OpTable> own_table(const OwnOp& op);

// Is the first dimension the live size?
bool has_padding(const OwnOp& op, const OwnTensor& tensor);

}  // namespace plumb::cases
