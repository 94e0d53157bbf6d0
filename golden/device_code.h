// SPDX-License-Identifier: Apache-2.0
//
// A digest of the device code behind an op.
#pragma once

#include <string>
#include <string_view>

namespace plumb::golden {

// On the simulator, where kernels are host code: digest of the kernel's source and its headers. On
// a real device: digest of all device code in this program.
std::string device_code_digest(std::string_view op, bool simulated);

}  // namespace plumb::golden
