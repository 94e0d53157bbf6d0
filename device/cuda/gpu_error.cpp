// SPDX-License-Identifier: Apache-2.0
#include "gpu_error.h"

namespace plumb::device::cuda {

Fault fault_of(NativeError error) {
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

}  // namespace plumb::device::cuda
