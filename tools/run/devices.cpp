// SPDX-License-Identifier: Apache-2.0
#include "tools/run/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "device/device.h"
#include "device/gpu/open.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream all(text + ",");
  for (std::string word; std::getline(all, word, ',');) words.push_back(word);
  return words;
}

// Devices that the vendor's environment variable makes visible, or else all device numbers.
std::vector<std::string> all_devices(const std::string& platform) {
  const char* visible =
      std::getenv(platform.starts_with("hip-") ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && *visible != '\0') return split(visible);
  std::vector<std::string> all;
  const int count = device::find_real_back_end(platform)->devices();
  for (int i = 0; i < count; ++i) all.push_back(std::to_string(i));
  return all;
}

bool is_number(std::string_view word) {
  return !word.empty() && word.size() < 6 &&
         std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

std::vector<std::string> devices_named(const std::string& text,
                                       const std::vector<std::string>& platforms) {
  std::vector<std::string> devices;
  if (text != "all") {
    devices = split(text);
    if (!std::ranges::all_of(devices, is_number)) {
      throw UsageError(fmt::format("--devices {}: neither all nor numbers, as 0,3", text));
    }
  }
  const auto real = std::ranges::find_if(platforms, is_real);
  if (real == platforms.end()) {
    throw UsageError("--devices is for GPUs: no selected platform is a GPU of this machine");
  }
  const std::vector<std::string> all = all_devices(*real);
  if (text == "all") return all;
  for (const std::string& one : devices) {
    if (std::ranges::find(all, one) != all.end()) continue;
    throw UsageError(
        fmt::format("--devices {}: this machine has the devices {}", text, fmt::join(all, ", ")));
  }
  return devices;
}

std::vector<std::string> worker_environment(const std::vector<std::string>& devices,
                                            std::size_t worker) {
  if (devices.empty()) return {};
  const std::string& device = devices[worker % devices.size()];
  return {"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=" + device,
          "HIP_VISIBLE_DEVICES=" + device};
}

}  // namespace plumb::tools
