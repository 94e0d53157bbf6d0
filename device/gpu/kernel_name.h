// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace plumb::device {

// A kernel's mangled name as its launcher spelled it: "select<4, 64>" for
// "void plumb::device::kernels::(anonymous namespace)::select<4, 64>(Params)". A name that is not
// mangled comes back as it is.
std::string short_kernel_name(const std::string& mangled);

}  // namespace plumb::device
