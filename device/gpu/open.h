// SPDX-License-Identifier: Apache-2.0
//
// The way into the back ends for real devices, for code that is compiled without their headers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "device/device.h"

namespace plumb::device {

struct RealBackEnd {
  // Why this machine cannot be `platform` ("cuda-sm90", "hip-gfx942"); empty: it can.
  std::string (*why_unavailable)(const std::string& platform);
  std::unique_ptr<Device> (*open)();
  // plumb's own kernels, for any platform of the back end that the build was made for.
  const Implementation& (*builtin)();
  const RateKernels* (*rates)();  // nullptr: none
  int (*devices)();               // how many this process sees; throws DeviceError
};

namespace cuda {
const RealBackEnd& back_end();
}
namespace hip {
const RealBackEnd& back_end();
}

// By the platform's name; nullptr: a simulated platform, or a back end that this build lacks.
const RealBackEnd* find_real_back_end(std::string_view platform);

}  // namespace plumb::device
