// SPDX-License-Identifier: Apache-2.0
//
// plumb run --devices: the GPUs of one host over which workers are spread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace plumb::tools {

// `text`: "all", or numbers with commas, as nvidia-smi numbers devices. Throws UsageError for other
// text, for a number without a device, and if no selected platform is a real one on this host.
std::vector<std::string> devices_named(const std::string& text,
                                       const std::vector<std::string>& platforms);

// Variables (NAME=value) of worker number `worker`, which make one device visible to it. Empty
// without devices.
std::vector<std::string> worker_environment(const std::vector<std::string>& devices,
                                            std::size_t worker);

}  // namespace plumb::tools
