// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/platform_share.h"

#include "device/device.h"

namespace plumb::cases {

PlatformShare share_of(const std::string& platform) {
  if (!device::why_unavailable(platform).empty()) return {};
  const device::Properties own = device::open_device(platform)->properties();
  if (!own.simulated) return {};
  PlatformShare share{.place = 0, .platforms = 0};
  for (const std::string& name : device::known_platforms()) {
    if (!device::why_unavailable(name).empty()) continue;
    const device::Properties other = device::open_device(name)->properties();
    if (!other.simulated || other.wave_size != own.wave_size) continue;
    if (name == platform) share.place = share.platforms;
    ++share.platforms;
  }
  return share;
}

}  // namespace plumb::cases
