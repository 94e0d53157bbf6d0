// SPDX-License-Identifier: Apache-2.0
//
// Names of error kinds, and the platforms that this build can open.
#include "device/device.h"

#include <algorithm>

#include "device/gpu/open.h"
#include "device/sim/sim_device.h"

namespace plumb::device {

namespace {

struct Platform {
  Properties properties;
  std::string why_unavailable;
};

Properties simulated(const char* name, int wave, int multiprocessors, std::size_t shared_kib,
                     Fp8Dialect fp8) {
  Properties result;
  result.platform = name;
  result.simulated = true;
  result.wave_size = wave;
  result.multiprocessors = multiprocessors;
  result.max_threads_per_block = 1024;
  result.shared_bytes_per_block = shared_kib << 10;
  result.fp8 = fp8;
  return result;
}

Platform real(const char* name) {
  Platform platform;
  platform.properties.platform = name;
  if (const RealBackEnd* const back_end = find_real_back_end(name)) {
    platform.why_unavailable = back_end->why_unavailable(name);
  } else {
    const bool cuda = platform.properties.platform.starts_with("cuda-");
    platform.why_unavailable =
        std::string("this build has no ") + (cuda ? "CUDA" : "HIP") + " back end";
  }
  return platform;
}

const std::vector<Platform>& platforms() {
  static const std::vector<Platform> all = {
      {simulated("sim-sm90", 32, 132, 227, Fp8Dialect::e4m3fn), ""},
      {simulated("sim-gfx942", 64, 304, 64, Fp8Dialect::e4m3fnuz), ""},
      {simulated("sim-gfx950", 64, 256, 160, Fp8Dialect::e4m3fn), ""},
      real("cuda-sm80"),
      real("cuda-sm90"),
      real("cuda-sm100"),
      real("hip-gfx942"),
      real("hip-gfx90a")};
  return all;
}

const Platform& find_platform(std::string_view name) {
  for (const Platform& platform : platforms()) {
    if (platform.properties.platform == name) return platform;
  }
  std::string known;
  for (const std::string& one : known_platforms()) known += " " + one;
  throw DeviceError(ErrorKind::invalid_argument,
                    "unknown platform '" + std::string(name) + "'; known are:" + known);
}

}  // namespace

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_argument: return "invalid_argument";
    case ErrorKind::out_of_memory: return "out_of_memory";
    case ErrorKind::launch_limits: return "launch_limits";
    case ErrorKind::out_of_bounds: return "out_of_bounds";
    case ErrorKind::use_after_free: return "use_after_free";
    case ErrorKind::uninitialized_read: return "uninitialized_read";
    case ErrorKind::race: return "race";
    case ErrorKind::divergent_barrier: return "divergent_barrier";
    case ErrorKind::exited_lane: return "exited_lane";
    case ErrorKind::deadlock: return "deadlock";
    case ErrorKind::capture_unsupported: return "capture_unsupported";
    case ErrorKind::capture_invalid: return "capture_invalid";
    case ErrorKind::held_by_graph: return "held_by_graph";
    case ErrorKind::guard_damaged: return "guard_damaged";
    case ErrorKind::timeout: return "timeout";
    case ErrorKind::unsupported: return "unsupported";
    case ErrorKind::other: return "other";
  }
  return "other";
}

std::vector<std::string> known_platforms() {
  std::vector<std::string> names;
  for (const Platform& platform : platforms()) names.push_back(platform.properties.platform);
  return names;
}

std::string why_unavailable(std::string_view platform) {
  return find_platform(platform).why_unavailable;
}

const RealBackEnd* find_real_back_end([[maybe_unused]] std::string_view platform) {
#ifdef PLUMB_CUDA
  if (platform.starts_with("cuda-")) return &cuda::back_end();
#endif
#ifdef PLUMB_HIP
  if (platform.starts_with("hip-")) return &hip::back_end();
#endif
  return nullptr;
}

const OpEntry* find_entry(const Implementation& implementation, std::string_view op) {
  const auto found = std::ranges::find(implementation.entries, op, &OpEntry::op);
  return found == implementation.entries.end() ? nullptr : &*found;
}

Event Device::create_timing_event() {
  throw DeviceError(ErrorKind::invalid_argument,
                    "create_timing_event: " + properties().platform + " has no clock");
}

double Device::elapsed_seconds(Event, Event) {
  throw DeviceError(ErrorKind::invalid_argument,
                    "elapsed_seconds: " + properties().platform + " has no clock");
}

const RateKernels* rate_kernels(std::string_view platform) {
  const RealBackEnd* const back_end = find_real_back_end(platform);
  return back_end == nullptr ? nullptr : back_end->rates();
}

std::unique_ptr<Device> open_device(std::string_view platform, const Conditions& conditions) {
  const Platform& found = find_platform(platform);
  if (!found.why_unavailable.empty()) {
    throw DeviceError(ErrorKind::invalid_argument,
                      "open_device: " + found.properties.platform + ": " + found.why_unavailable);
  }
  if (const RealBackEnd* const back_end = find_real_back_end(platform)) return back_end->open();
  return std::make_unique<sim::SimDevice>(found.properties, conditions);
}

}  // namespace plumb::device
