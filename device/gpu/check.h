// SPDX-License-Identifier: Apache-2.0
//
// Turns errors of a vendor's runtime into DeviceErrors that name the call. gpu_error.h comes from
// the folder of the back end.
#pragma once

#include <string>

#include "gpu_error.h"

namespace plumb::device::PLUMB_GPU {

// "call: text (name)"; the name is left out if it is equal to the text.
std::string describe(NativeError error, const char* call);
// Throws DeviceError unless `error` is success, after clearing the runtime's last error.
void check(NativeError error, const char* call);

// Calls call(...) and passes its result and its name to check().
#define PLUMB_CHECKED(call, ...) ::plumb::device::PLUMB_GPU::check(call(__VA_ARGS__), #call)

}  // namespace plumb::device::PLUMB_GPU
