// SPDX-License-Identifier: Apache-2.0
//
// Provenance of a result: the attributes of a case. They contain no time and no path.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "device/device.h"

namespace plumb::golden {

using Provenance = std::map<std::string, std::string>;

// Every case has all of these.
inline constexpr std::array<std::string_view, 13> kProvenanceNames = {
    "schema", "plumb_version", "commit",    "generator", "platform",       "device", "compiler",
    "flags",  "device_code",   "libraries", "simulated", "implementation", "reason"};
// Optional attribute on simulated platforms: traits of the platform that the result depends on.
inline constexpr std::string_view kDependsOn = "depends_on";

// Provenance of an op's results in this build on a device. The caller adds "commit", "generator"
// and "reason". `plugin`: name and version of the plug-in that computed them; "": plumb's own
// kernels. How a plug-in was compiled is unknown.
Provenance provenance_of(std::string_view op, const device::Properties& device,
                         const std::string& plugin = "");

// Results have the same bits if platform, device, compiler, flags and plug-in are equal. Returns in
// words which of them differ; "": none.
std::string toolchain_difference(const Provenance& recorded, const Provenance& now);

}  // namespace plumb::golden
