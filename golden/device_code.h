// SPDX-License-Identifier: Apache-2.0
//
// A digest of the device code behind an op.
#pragma once

#include <string>
#include <string_view>

namespace plumb::golden {

// On the simulator, where kernels are host code: digest of the kernel's source and its headers, or
// of all kernels if none has the op's name (a decode step). On a real device: digest of all device
// code in this program.
std::string device_code_digest(std::string_view op, bool simulated);

}  // namespace plumb::golden
