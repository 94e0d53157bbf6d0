// SPDX-License-Identifier: Apache-2.0
//
// plumb's own tables of ops with one op replaced.
#pragma once

#include <functional>
#include <string_view>

#include "device/op_entry.h"

namespace plumb::cases {

// Table of ops of a platform, as in RunOptions.
using Implementations =
    std::function<const device::Implementation&(std::string_view, bool checked)>;

struct Replacement {
  device::OpEntry simulated;
  device::OpEntry cuda;  // without a launcher if there is none
};
// The tables live as long as the function does. Other changes in `base` are kept. Without a `base`
// the other ops are plumb's own.
Implementations with_op_replaced(const Replacement& by, const Implementations& base = {});
using EntryChange = std::function<void(std::string_view platform, device::OpEntry& entry)>;
Implementations with_op_changed(std::string_view op, const EntryChange& change,
                                const Implementations& base = {});
Implementations with_op_left_out(std::string_view op, const Implementations& base = {});

}  // namespace plumb::cases
