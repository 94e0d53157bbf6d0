// SPDX-License-Identifier: Apache-2.0
//
// A moved tensor as JSON, in reports of plumb run and plumb golden.
#pragma once

#include <nlohmann/json.hpp>

#include "golden/drift.h"

namespace plumb::tools {

nlohmann::ordered_json drift_to_json(const golden::TensorDrift& drift);
// Throws std::exception for other JSON.
golden::TensorDrift drift_from_json(const nlohmann::ordered_json& json);

}  // namespace plumb::tools
