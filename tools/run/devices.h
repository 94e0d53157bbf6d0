// SPDX-License-Identifier: Apache-2.0
//
// plumb run --devices: the GPUs of one host, and the workers that are spread over them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace plumb::tools {

// "all", or numbers with commas, as nvidia-smi numbers them. Throws UsageError for anything else,
// for a number that there is not, and where none of the platforms is a real one that is here.
std::vector<std::string> devices_named(const std::string& text,
                                       const std::vector<std::string>& platforms);

// NAME=value of the worker with this number: it sees one device. Empty without devices.
std::vector<std::string> worker_environment(const std::vector<std::string>& devices,
                                            std::size_t worker);

}  // namespace plumb::tools
