// SPDX-License-Identifier: Apache-2.0
//
// Where a result comes from: the attributes of a case. Nothing here is a time or a place.
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
// Optional, of simulated platforms: which of the platform's traits the result depends on.
inline constexpr std::string_view kDependsOn = "depends_on";

// Of what this build computes for an op on a device. Without "commit", "generator" and "reason",
// which are whoever's that asks.
Provenance provenance_of(std::string_view op, const device::Properties& device);

// Where results are promised to have the same bits: platform, device, compiler and flags. Empty, or
// which of them differ, in words.
std::string toolchain_difference(const Provenance& recorded, const Provenance& now);

}  // namespace plumb::golden
