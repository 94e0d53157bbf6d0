// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace plumb::device {

// The kernel's name as its launcher wrote it: "select<4, 64>" for the mangled form of "void
// plumb::device::kernels::(anonymous namespace)::select<4, 64>(Params)". A name that is not mangled
// is returned unchanged.
std::string short_kernel_name(const std::string& mangled);

}  // namespace plumb::device
