// SPDX-License-Identifier: Apache-2.0
//
// Errors of a vendor's runtime as DeviceErrors that name the call. gpu_error.h is the back end's.
#pragma once

#include <string>

#include "gpu_error.h"

namespace plumb::device::PLUMB_GPU {

// The call, what the runtime says of the error, and its name, where these are two, in parentheses.
std::string describe(NativeError error, const char* call);
// Throws DeviceError unless `error` is success. Clears the runtime's last error.
void check(NativeError error, const char* call);

// check(call(...)) with the call's name.
#define PLUMB_CHECKED(call, ...) ::plumb::device::PLUMB_GPU::check(call(__VA_ARGS__), #call)

}  // namespace plumb::device::PLUMB_GPU
