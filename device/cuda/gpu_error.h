// SPDX-License-Identifier: Apache-2.0
//
// Errors of the CUDA runtime as device/gpu/check.h needs them.
#pragma once

#include <cuda_runtime.h>

#include "device/device.h"

#define PLUMB_GPU cuda  // the namespace that device/gpu is compiled into

namespace plumb::device::cuda {

using NativeError = cudaError_t;
inline constexpr NativeError kSuccess = cudaSuccess;

ErrorKind error_kind_of(NativeError error);
inline const char* error_text(NativeError error) { return cudaGetErrorString(error); }
inline const char* error_name(NativeError error) { return cudaGetErrorName(error); }
// Clears the runtime's last error, so that the next call does not report it again.
inline void forget_last_error() { cudaGetLastError(); }

}  // namespace plumb::device::cuda
