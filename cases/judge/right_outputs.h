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
  TensorSet outputs;                                   // elements that are not promised are 0
  std::map<std::string, Bytes, std::less<>> promised;  // per output, a mask of the promised bits
  // Why no right outputs were found: one line; empty: they pass their own verdict.
  std::string refused;
};

// Computes the expectations from inputs and outputs.
using ExpectOutputs = std::function<Expectations(const TensorSet&)>;

// The right outputs for these inputs. The outputs in `tensors` have no influence. If the
// expectation of one output depends on the stored bytes of another (a rounded residual, scales),
// expectations are computed again until the outputs no longer change.
RightOutputs right_outputs(const TensorSet& tensors, const ExpectOutputs& expect);

// Overwrites the promised bits of `to` with the right ones.
void write_promised(const RightOutputs& right, const std::string& output, Bytes& to);

}  // namespace plumb::cases
