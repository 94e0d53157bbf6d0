// SPDX-License-Identifier: Apache-2.0
//
// plumb's own tables of ops with one op replaced.
#pragma once

#include <functional>
#include <string_view>

#include "device/plumb_ops.h"

namespace plumb::cases {

// By platform, as RunOptions has it.
using Implementations = std::function<const plumb_implementation&(std::string_view, bool checked)>;

struct Replacement {
  plumb_op_entry simulated;
  plumb_op_entry cuda;  // without a launcher: there is none
};
// The tables live as long as the function does.
// What else is wrong with `base` stays so; without one the others are plumb's own.
Implementations with_op_replaced(const Replacement& by, const Implementations& base = {});
Implementations with_op_left_out(std::string_view op, const Implementations& base = {});

}  // namespace plumb::cases
