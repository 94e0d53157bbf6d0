// SPDX-License-Identifier: Apache-2.0
//
// A device whose graph replays do nothing: fault number one of every check that replays.
#pragma once

#include "device/forwarding_device.h"

namespace plumb::cases {

class DeadReplay final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  void replay(device::GraphExec, device::Stream) override {}
};

}  // namespace plumb::cases
