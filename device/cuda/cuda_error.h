// SPDX-License-Identifier: Apache-2.0
//
// Errors of the CUDA runtime as DeviceErrors that name the call.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "device/device.h"

namespace plumb::device::cuda {

Fault fault_of(cudaError_t error);
// "cudaMemcpyAsync: an illegal memory access was encountered"
std::string describe(cudaError_t error, const char* call);
// Throws DeviceError unless `error` is cudaSuccess. Clears the runtime's last error.
void check(cudaError_t error, const char* call);

// check(cudaX(...)) with the call's name.
#define PLUMB_CUDA(call, ...) ::plumb::device::cuda::check(call(__VA_ARGS__), #call)

}  // namespace plumb::device::cuda
