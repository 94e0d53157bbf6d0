// SPDX-License-Identifier: Apache-2.0
#include "device/remote/own_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "device/device.h"
#include "device/plugin/services.h"
#include "device/remote/plugin_process.h"

namespace plumb::device::remote {

namespace {

using OwnLauncher = plumb_status (*)(const void* params);

template <OwnKernelCall kCall, std::size_t kPosition>
plumb_status call_there(const void* params) {
  const auto process = PluginProcess::active();
  return process ? process->call_own(kCall, kPosition, params) : PLUMB_LAUNCH_FAILED;
}

template <OwnKernelCall kCall, std::size_t... kPosition>
constexpr std::array<OwnLauncher, kOwnCount> make_own_launchers(std::index_sequence<kPosition...>) {
  return {&call_there<kCall, kPosition>...};
}
constexpr auto kOwnLaunches =
    make_own_launchers<OwnKernelCall::launch>(std::make_index_sequence<kOwnCount>());
constexpr auto kOwnPlans =
    make_own_launchers<OwnKernelCall::plan>(std::make_index_sequence<kOwnCount>());

}  // namespace

std::size_t position_of_own(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(kOwnKernels, name, &OwnKernel::name) -
                                  std::begin(kOwnKernels));
}

plumb_status call_own(OwnKernelCall call, std::size_t own, const void* params) {
  const OwnKernel& kernel = kOwnKernels[own];
  plumb_stream stream = nullptr;
  std::memcpy(&stream, static_cast<const std::byte*>(params) + kernel.stream_offset, sizeof stream);
  const plumb_host& services = plugin_services();
  const plumb_device* const device = services.device(services.context, stream);
  if (device == nullptr) return PLUMB_INVALID_ARGUMENT;
  const OpEntry* const entry = find_entry(builtin_implementation(device->platform), kernel.name);
  if (entry == nullptr) return PLUMB_UNSUPPORTED;
  if (call == OwnKernelCall::launch) return entry->launch(params);
  return entry->plan == nullptr ? PLUMB_OK : entry->plan(params);
}

Implementation launched_there(const Implementation& own) {
  Implementation there{own.name, {}};
  for (const OpEntry& entry : own.entries) {
    const std::size_t position = position_of_own(entry.op);
    if (position == kOwnCount) continue;
    there.entries.push_back(entry);
    there.entries.back().launch = kOwnLaunches[position];
    if (entry.plan != nullptr) there.entries.back().plan = kOwnPlans[position];
  }
  return there;
}

Implementation with_own_kernels(const Implementation& plugin, const Implementation& own,
                                const std::set<std::string>& left_out) {
  Implementation both = plugin;
  std::erase_if(both.entries,
                [&](const OpEntry& entry) { return left_out.contains(std::string(entry.op)); });
  for (const OpEntry& entry : own.entries) {
    if (find_entry(both, entry.op) == nullptr) both.entries.push_back(entry);
  }
  return both;
}

}  // namespace plumb::device::remote
