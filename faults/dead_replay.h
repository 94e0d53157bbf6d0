// SPDX-License-Identifier: Apache-2.0
//
// A device whose graph replays do nothing. Every check that replays graphs must find this fault.
#pragma once

#include "device/forwarding_device.h"

namespace plumb::cases {

class DeadReplay final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  void replay(device::GraphExec, device::Stream) override {}
};

}  // namespace plumb::cases
