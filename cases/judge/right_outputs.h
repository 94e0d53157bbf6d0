// SPDX-License-Identifier: Apache-2.0
//
// The reference's outputs of one call, as the op should have stored them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cases/judge/expectation.h"
#include "cases/tensors/tensor.h"

namespace plumb::cases {

struct RightOutputs {
  TensorSet outputs;                                   // what is not promised is 0
  std::map<std::string, Bytes, std::less<>> promised;  // bits of each that are
  std::string refused;  // why these are none after all: a line; empty: they pass their own judge
};

// Gives the expectations for these inputs and outputs.
using ExpectOutputs = std::function<Expectations(const TensorSet&)>;

// A function of the inputs alone: the outputs in `tensors` have no influence. If the expectation of
// one output depends on the stored bytes of another (a rounded residual, scales), expectations are
// computed again until the outputs no longer change.
RightOutputs right_outputs(const TensorSet& tensors, const ExpectOutputs& expect);

// The promised bits over what is there.
void write_promised(const RightOutputs& right, const std::string& output, Bytes& to);

}  // namespace plumb::cases
