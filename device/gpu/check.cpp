// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/check.h"

namespace plumb::device::PLUMB_GPU {

std::string describe(NativeError error, const char* call) {
  return std::string(call) + ": " + error_text(error) + " (" + error_name(error) + ")";
}

void check(NativeError error, const char* call) {
  if (error == kSuccess) return;
  forget_last_error();
  throw DeviceError(fault_of(error), describe(error, call));
}

}  // namespace plumb::device::PLUMB_GPU
