// SPDX-License-Identifier: Apache-2.0
//
// The same call in two runs of a decode step, bit for bit.
#pragma once

#include <optional>
#include <string>

#include "cases/decode/taps.h"

namespace plumb::cases {

// The first output that differs in what the op promises, in a line; nothing if none does. What an
// op keeps of a tensor that it changes in place is not compared: it is older than the call.
std::optional<std::string> output_difference(const Taps::Tap& got, const Taps::Tap& expected);

// The same for rows of the first `live` of `tokens` tokens, in tensors that have a row per token.
std::optional<std::string> live_row_difference(const Taps::Tap& got, const Taps::Tap& expected,
                                               std::int64_t live, std::int64_t tokens);

// The first input whose bytes differ, promised or not; nullptr if none does.
const Taps::Copy* different_input(const Taps::Tap& got, const Taps::Tap& expected);

}  // namespace plumb::cases
