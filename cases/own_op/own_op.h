// SPDX-License-Identifier: Apache-2.0
//
// An op that a user declares while the program runs: a list of arguments and a reference function.
// It gets rows, inputs, scenarios and verdicts as the ops of cases/ops do.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tensors/tensor.h"
#include "reference/bound.h"

namespace plumb::cases {

// One array argument. If the first dimension is the op's `live` size, only the first live rows of a
// step hold data, and the rest is padding.
struct OwnTensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  bool output = false, optional = false;
  // One formula per dimension: sums and differences of products and quotients of sizes and numbers,
  // as in "tokens", "4*hidden", "width-1".
  std::vector<std::string> shape;
  // Integers are drawn from [least, below). `below` is a formula like those of `shape`.
  std::int64_t least = 0;
  std::string below = "256";
  double scale = 1;  // floats: standard deviation in a typical row
  // Minimum and maximum of floats; empty: floats are normally distributed with `scale`.
  std::vector<double> between;
  std::string says;
};

// A size and the values that the op's rows give it, the usual value first. A size that occurs in no
// array's `shape` or `below` is a plain number for kernel and reference, or a flag (0 or 1).
struct OwnSize {
  std::string name;
  std::vector<std::int64_t> values;
};

struct OwnReal {
  std::string name;
  float value = 0;
};

// A row that the user lists in addition to the rows that follow from the sizes.
struct OwnRow {
  std::string name, why, tier = "default";
  std::map<std::string, std::int64_t> sizes;
};

// One input as passed to the reference, without padding and gaps.
struct OwnInput {
  std::vector<std::int64_t> shape;
  std::variant<std::vector<double>, std::vector<std::int64_t>> values;  // floats, integers
};

// Arguments of one call of the reference. Optional inputs that are null in the call are absent.
// `structured`: the inputs have the fill `exact`, so many terms are equal and their rounding errors
// are not independent.
struct OwnCall {
  std::map<std::string, OwnInput> inputs;
  std::map<std::string, std::int64_t> sizes;
  std::map<std::string, double> reals;
  reference::Numerics numerics;
  bool structured = false;
};

// The right contents of one output: values with bounds, or the exact numbers in row-major order.
using OwnResult = std::variant<reference::Estimate, std::vector<std::int64_t>>;

struct OwnOp {
  std::string name, summary;
  std::vector<OwnTensor> tensors;  // in the order of the reference's arguments
  std::vector<OwnSize> sizes;
  std::vector<OwnReal> reals;
  std::string live;  // name of a size; "": no argument has padding
  std::vector<OwnRow> rows;
  // Returns a result for each output, in the order of the tensors. Throws BadRow.
  std::function<std::vector<OwnResult>(const OwnCall&)> reference;
};

// The definition of an own op, and its rows as the text of a case file. define_own_op makes it.
// Data that the definition points to lives as long as the process. Throws BadRow for an op without
// outputs, more than 40 arrays, and invalid names, shapes or sizes.
struct OwnDefinition {
  OpDefinition op;
  std::string rows;
};
OwnDefinition define_own_op(OwnOp op);

}  // namespace plumb::cases
