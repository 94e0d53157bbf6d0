// SPDX-License-Identifier: Apache-2.0
//
// Makes the op table (op_table.h) of an op that a user declares. The op's parameter struct has
// sizes, strides, reals, pointers and the stream, in this order.
#pragma once

#include <memory>
#include <string>

#include "cases/own_op/own_op.h"
#include "cases/tables/op_table.h"

namespace plumb::cases {

// Row parameter: elements between rows of inputs.
inline constexpr const char* kOwnRowGap = "row_gap";
// Row parameter: elements between rows of outputs.
inline constexpr const char* kOwnOutGap = "out_gap";

// Parses a formula like "4*hidden" or "width-1" over the op's sizes. Throws BadRow; the message
// names `what`.
Formula own_size(const OwnOp& op, const std::string& text, const std::string& what);

// Throws BadRow for a dimension that own_size() cannot parse.
std::unique_ptr<OpTable> own_table(const OwnOp& op);

// True if the tensor's first dimension is the op's live size, so that it can have padded rows.
bool has_padding(const OwnOp& op, const OwnTensor& tensor);

}  // namespace plumb::cases
