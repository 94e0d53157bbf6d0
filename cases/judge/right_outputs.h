// SPDX-License-Identifier: Apache-2.0
//
// The reference's outputs of one call, as the op should have stored them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cases/judge/judge.h"
#include "cases/tensors/tensor.h"

namespace plumb::cases {

struct RightOutputs {
  TensorSet outputs;                                   // what is not promised is 0
  std::map<std::string, Bytes, std::less<>> promised;  // bits of each that are
  std::string refused;  // why these are none after all: a line; empty: they pass their own judge
};

// Says of inputs and outputs what is wrong.
using JudgeOutputs = std::function<std::vector<TensorReport>(const TensorSet&)>;

// A function of the inputs alone, whatever the outputs in `tensors` hold. Where one output is
// judged on the stored bytes of another (a rounded residual, scales), judging is repeated until
// nothing changes any more.
RightOutputs right_outputs(const TensorSet& tensors, const JudgeOutputs& judge);

// The promised bits over what is there.
void write_promised(const RightOutputs& right, const std::string& output, Bytes& to);

}  // namespace plumb::cases
