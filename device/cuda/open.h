// SPDX-License-Identifier: Apache-2.0
//
// The way into this back end for code that is compiled without its headers.
#pragma once

#include <memory>
#include <string>

#include "device/device.h"

namespace plumb::device::cuda {

// Why this machine cannot be `platform` ("cuda-sm90"); empty: it can.
std::string why_unavailable(const std::string& platform);
std::unique_ptr<Device> open();
// plumb's own kernels, for any CUDA platform that the build was made for.
const plumb_implementation& builtin();
const RateKernels& rate_kernels();

}  // namespace plumb::device::cuda
