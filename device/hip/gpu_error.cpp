// SPDX-License-Identifier: Apache-2.0
#include "gpu_error.h"

namespace plumb::device::hip {

Fault fault_of(NativeError error) {
  switch (error) {
    case hipErrorOutOfMemory: return Fault::out_of_memory;
    case hipErrorInvalidValue:
    case hipErrorInvalidHandle:
    case hipErrorInvalidDevice: return Fault::invalid_argument;
    case hipErrorInvalidConfiguration:
    case hipErrorLaunchOutOfResources: return Fault::launch_limits;
    case hipErrorIllegalAddress: return Fault::out_of_bounds;
    case hipErrorLaunchTimeOut: return Fault::timeout;
    case hipErrorStreamCaptureUnsupported:
    case hipErrorStreamCaptureImplicit:
    case hipErrorStreamCaptureIsolation: return Fault::capture_unsupported;
    case hipErrorStreamCaptureInvalidated:
    case hipErrorStreamCaptureUnmatched:
    case hipErrorStreamCaptureUnjoined:
    case hipErrorStreamCaptureWrongThread: return Fault::capture_invalid;
    default: return Fault::other;
  }
}

}  // namespace plumb::device::hip
