// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/check.h"

namespace plumb::device::PLUMB_GPU {

std::string describe(NativeError error, const char* call) {
  const std::string text = error_text(error), name = error_name(error);
  return std::string(call) + ": " + text + (text == name ? "" : " (" + name + ")");
}

void check(NativeError error, const char* call) {
  if (error == kSuccess) return;
  forget_last_error();
  throw DeviceError(error_kind_of(error), describe(error, call));
}

}  // namespace plumb::device::PLUMB_GPU
