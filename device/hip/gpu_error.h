// SPDX-License-Identifier: Apache-2.0
//
// Errors of the HIP runtime as device/gpu/check.h needs them.
#pragma once

#include <hip/hip_runtime_api.h>

#include "device/device.h"

#define PLUMB_GPU hip  // the namespace that device/gpu is compiled into

namespace plumb::device::hip {

using NativeError = hipError_t;
inline constexpr NativeError kSuccess = hipSuccess;

ErrorKind error_kind_of(NativeError error);
inline const char* error_text(NativeError error) { return hipGetErrorString(error); }
inline const char* error_name(NativeError error) { return hipGetErrorName(error); }
// Clears the runtime's last error, so that the next call does not report it again.
inline void forget_last_error() { static_cast<void>(hipGetLastError()); }

}  // namespace plumb::device::hip
