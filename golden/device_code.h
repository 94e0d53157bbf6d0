// SPDX-License-Identifier: Apache-2.0
//
// A digest of the device code behind an op.
#pragma once

#include <string>
#include <string_view>

namespace plumb::golden {

// Of the simulator, where kernels are host code: of the kernel's source and its headers. Of a real
// device: of all device code in this program, as the vendor's compiler left it there.
std::string device_code_digest(std::string_view op, bool simulated);

}  // namespace plumb::golden
