// SPDX-License-Identifier: Apache-2.0
#include "golden/provenance.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <sstream>

#include "golden/device_code.h"
#include "golden/model.h"

namespace plumb::golden {

namespace {

const std::string kUnknown = "unknown", kPlugin = "plug-in ";

// Compiler of a platform's kernels: the host compiler, or the vendor's device compiler.
std::string compiler_of(const device::Properties& device) {
  if (!device.simulated) return PLUMB_DEVICE_COMPILER;
#ifdef __clang__
  return "clang++ " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

std::string device_of(const device::Properties& device) {
  const std::string name = device.name.empty() ? "simulator" : device.name;
  return fmt::format("{}, {} multiprocessors, waves of {}, {}", name, device.multiprocessors,
                     device.wave_size,
                     device.fp8 == device::Fp8Dialect::e4m3fn ? "e4m3fn" : "e4m3fnuz");
}

std::string libraries_of(const device::Properties& device) {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  const std::string hdf5 = fmt::format("HDF5 {}.{}.{}", major, minor, release);
  return device.runtime.empty() ? hdf5 : hdf5 + ", " + device.runtime;
}

// The compiled architecture that a platform runs ("90a-real" of "80-real 90a-real" on "cuda-sm90").
// Builds for additional architectures contain the same code for it.
std::string architecture_of(const std::string& platform) {
  const auto sm = platform.find("-sm");
  const std::string number = sm == std::string::npos ? "" : platform.substr(sm + 3);
  std::istringstream all(PLUMB_DEVICE_ARCHITECTURES);
  for (std::string one; !number.empty() && all >> one;) {
    if (one.starts_with(number)) return one;
  }
  return "";
}

std::string flags_of(const device::Properties& device) {
  if (device.simulated) return PLUMB_HOST_FLAGS;
  const std::string architecture = architecture_of(device.platform);
  return architecture.empty() ? PLUMB_DEVICE_FLAGS : PLUMB_DEVICE_FLAGS " " + architecture;
}

}  // namespace

Provenance provenance_of(std::string_view op, const device::Properties& device,
                         const std::string& plugin) {
  const bool own = plugin.empty();
  return {{"schema", std::to_string(kSchema)},
          {"plumb_version", PLUMB_VERSION},
          {"platform", device.platform},
          {"device", device_of(device)},
          {"compiler", own ? compiler_of(device) : kUnknown},
          {"flags", own ? flags_of(device) : kUnknown},
          {"device_code", own ? device_code_digest(op, device.simulated) : kUnknown},
          {"libraries", libraries_of(device)},
          {"simulated", device.simulated ? "yes" : "no"},
          {"implementation", own ? "plumb " PLUMB_VERSION : kPlugin + plugin}};
}

std::string toolchain_difference(const Provenance& recorded, const Provenance& now) {
  const auto value = [](const Provenance& provenance, const char* name) {
    const auto found = provenance.find(name);
    return found == provenance.end() ? kUnknown : found->second;
  };
  std::string text;
  const auto add = [&](const char* name, const std::string& had, const std::string& has) {
    if (had == has) return;
    text += fmt::format("{}{} {} (recorded: {})", text.empty() ? "" : ", ", name, has, had);
  };
  for (const char* name : {"platform", "device", "compiler", "flags"}) {
    add(name, value(recorded, name), value(now, name));
  }
  // The version of plumb says nothing about the bits of its own kernels.
  const std::string had = value(recorded, "implementation"), has = value(now, "implementation");
  if (had.starts_with(kPlugin) || has.starts_with(kPlugin)) add("implementation", had, has);
  return text;
}

}  // namespace plumb::golden
