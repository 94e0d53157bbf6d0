// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_error.h"

namespace plumb::device::cuda {

Fault fault_of(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return Fault::out_of_memory;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorInvalidDevice: return Fault::invalid_argument;
    case cudaErrorInvalidConfiguration:
    case cudaErrorLaunchOutOfResources: return Fault::launch_limits;
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError: return Fault::out_of_bounds;
    case cudaErrorLaunchTimeout: return Fault::timeout;
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureIsolation: return Fault::capture_unsupported;
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureWrongThread: return Fault::capture_invalid;
    default: return Fault::other;
  }
}

std::string describe(cudaError_t error, const char* call) {
  return std::string(call) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) +
         ")";
}

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw DeviceError(fault_of(error), describe(error, call));
}

}  // namespace plumb::device::cuda
