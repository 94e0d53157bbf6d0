// SPDX-License-Identifier: Apache-2.0
#include "gpu_error.h"

namespace plumb::device::cuda {

ErrorKind error_kind_of(NativeError error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return ErrorKind::out_of_memory;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorInvalidDevice: return ErrorKind::invalid_argument;
    case cudaErrorInvalidConfiguration:
    case cudaErrorLaunchOutOfResources: return ErrorKind::launch_limits;
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError: return ErrorKind::out_of_bounds;
    case cudaErrorLaunchTimeout: return ErrorKind::timeout;
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureIsolation: return ErrorKind::capture_unsupported;
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureWrongThread: return ErrorKind::capture_invalid;
    default: return ErrorKind::other;
  }
}

}  // namespace plumb::device::cuda
