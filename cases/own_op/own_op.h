// SPDX-License-Identifier: Apache-2.0
//
// An op that is declared while the program runs: its arguments are a list, and its reference is a
// function. It has rows, inputs, scenarios and verdicts as an op of cases/ops has.
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

// One array. Of the first dimension of an input or output that has the op's `live` size, a step has
// so many live rows, and padding behind them.
struct OwnTensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  bool output = false, optional = false;
  // Sums and differences of products and quotients of sizes and numbers: "tokens", "4*hidden",
  // "width-1".
  std::vector<std::string> shape;
  // Of integers, which are drawn between least and below - 1. `below` is spelt as in a shape.
  std::int64_t least = 0;
  std::string below = "256";
  double scale = 1;             // of floats: standard deviation of a typical row
  std::vector<double> between;  // of floats: the least and the largest; empty: normal, by `scale`
  std::string says;
};

// One size, and the values that the op's rows give it. The first value is the usual one. A size
// that no array has is a number; a flag is 0 or 1.
struct OwnSize {
  std::string name;
  std::vector<std::int64_t> values;
};

struct OwnReal {
  std::string name;
  float value = 0;
};

// One row beside those that follow from the sizes.
struct OwnRow {
  std::string name, why, tier = "default";
  std::map<std::string, std::int64_t> sizes;
};

// One input as the reference gets it, without padding and gaps.
struct OwnInput {
  std::vector<std::int64_t> shape;
  std::variant<std::vector<double>, std::vector<std::int64_t>> values;  // floats, integers
};

// One call. An optional input that the call lacks is missing. `structured`: inputs are equal or
// nearly so, and errors with them.
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
  std::vector<OwnTensor> tensors;  // in the order of the arguments of the reference
  std::vector<OwnSize> sizes;
  std::vector<OwnReal> reals;
  std::string live;  // a size; "": no argument has padding
  std::vector<OwnRow> rows;
  // A result for each output, in the order of the tensors. Throws BadRow.
  std::function<std::vector<OwnResult>(const OwnCall&)> reference;
};

// A definition, and the text of its rows. What the definition points to lives as long as the
// process. Throws BadRow for an op without outputs, for too many arguments, and for a name, a shape
// or a size that has no meaning.
struct OwnDefinition {
  OpDefinition op;
  std::string rows;
};
OwnDefinition define_own_op(OwnOp op);

}  // namespace plumb::cases
