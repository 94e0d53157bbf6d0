// SPDX-License-Identifier: Apache-2.0
//
// Gives access to the back ends for real devices from code that is compiled without their headers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "device/device.h"

namespace plumb::device {

struct RealBackEnd {
  // Why this machine cannot run `platform` ("cuda-sm90", "hip-gfx942"); empty if it can.
  std::string (*why_unavailable)(const std::string& platform);
  std::unique_ptr<Device> (*open)();
  // plumb's own kernels. The same table serves all platforms that the back end was built for.
  const Implementation& (*builtin)();
  const RateKernels* (*rates)();  // may return nullptr: none
  int (*devices)();               // number of devices that this process sees; throws DeviceError
};

namespace cuda {
const RealBackEnd& back_end();
}
namespace hip {
const RealBackEnd& back_end();
}

// The back end of a platform. nullptr for a simulated platform or a back end that is not built in.
const RealBackEnd* find_real_back_end(std::string_view platform);

}  // namespace plumb::device
