// SPDX-License-Identifier: Apache-2.0
//
// Ops that have a fixed place in a model, in the model's order, and the weights that each of them
// has   [7.7].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "decode/engine/geometry.h"

namespace plumb::cases {

struct WeightOfOp {
  std::string_view tensor;  // of the op
  std::string label;        // of the engine's memory: "layer 1 q_norm"
};
struct OpInModel {
  std::string_view op;
  std::vector<WeightOfOp> weights = {};
};

std::vector<OpInModel> ops_of_model(const device::decode::Geometry& geometry, bool drafts);
// Metadata, indexer and attention ops have no fixed place: their calls depend on the batch.
bool has_its_place(std::string_view op);

}  // namespace plumb::cases
