// SPDX-License-Identifier: Apache-2.0
//
// Wrong rows that the launch did not write: they hold what was there before it, or what an earlier
// step stored. TensorSpec::clues says what that is.
#pragma once

#include <optional>
#include <string>

namespace plumb::cases {

struct WrongRows;

std::optional<std::string> never_written(const WrongRows& view);
// The same where what was there may be a result: zeros, and -1.
std::optional<std::string> as_before(const WrongRows& view);
std::optional<std::string> earlier_step(const WrongRows& view);

}  // namespace plumb::cases
