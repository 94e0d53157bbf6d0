// SPDX-License-Identifier: Apache-2.0
#include "gpu_error.h"

namespace plumb::device::hip {

ErrorKind error_kind_of(NativeError error) {
  switch (error) {
    case hipErrorOutOfMemory: return ErrorKind::out_of_memory;
    case hipErrorInvalidValue:
    case hipErrorInvalidHandle:
    case hipErrorInvalidDevice: return ErrorKind::invalid_argument;
    case hipErrorInvalidConfiguration:
    case hipErrorLaunchOutOfResources: return ErrorKind::launch_limits;
    case hipErrorIllegalAddress: return ErrorKind::out_of_bounds;
    case hipErrorLaunchTimeOut: return ErrorKind::timeout;
    case hipErrorStreamCaptureUnsupported:
    case hipErrorStreamCaptureImplicit:
    case hipErrorStreamCaptureIsolation: return ErrorKind::capture_unsupported;
    case hipErrorStreamCaptureInvalidated:
    case hipErrorStreamCaptureUnmatched:
    case hipErrorStreamCaptureUnjoined:
    case hipErrorStreamCaptureWrongThread: return ErrorKind::capture_invalid;
    default: return ErrorKind::other;
  }
}

}  // namespace plumb::device::hip
