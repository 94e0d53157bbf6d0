// SPDX-License-Identifier: Apache-2.0
//
// The linear maps between the ops of a step, each a matrix of its own by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "decode/engine/model.h"

namespace plumb::device::decode {

// "layer 2 attention"
std::string layer_name(std::size_t layer, const char* what);

// bf16 [tokens, in_columns] to [tokens, out_columns].
void linear(const StepContext& step, const std::string& name, const void* in,
            std::int64_t in_columns, void* out, std::int64_t out_columns,
            plumb_format out_format = PLUMB_BF16);

}  // namespace plumb::device::decode
