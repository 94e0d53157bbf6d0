// SPDX-License-Identifier: Apache-2.0
#include "device/remote/serve_plugin.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "device/background_load/occupancy_hog.h"
#include "device/plugin/float_environment.h"
#include "device/plugin/hosted_device.h"
#include "device/plugin/plugin.h"
#include "device/plugin/services.h"
#include "device/remote/server.h"

namespace plumb::device::remote {

namespace {

// Launches the occupancy hog: plumb's own kernel that occupies multiprocessors while the plug-in's
// kernels run in concurrent cases.
plumb_status launch_occupancy_hog(const void* params) {
  const auto& hog = *static_cast<const plumb_occupancy_hog_params*>(params);
  const plumb_host& services = plugin_services();
  const plumb_device* device = services.device(services.context, hog.stream);
  if (device == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto* entry = find_entry(builtin_implementation(device->platform), "occupancy_hog");
  return entry == nullptr ? PLUMB_UNSUPPORTED : entry->launch(params);
}

Introduction introduction_of(const Plugin& plugin) {
  return {plugin.name(), plugin.version(), plugin.implementation().entries};
}

std::unique_ptr<Device> open_hosted(std::string_view platform, const Conditions& conditions) {
  return std::make_unique<HostedDevice>(open_device(platform, conditions));
}

}  // namespace

void serve_plugin(const std::string& library, const OwnedDescriptor& control) {
  try {
    // Never destroyed: threads use it until the process ends, also while a plug-in calls exit.
    const auto* plugin = new Plugin(library);
    serve_implementation(introduction_of(*plugin), &open_hosted, control);
  } catch (const PluginError& error) {
    refuse_to_serve(control, error.what());
  }
}

void serve_implementation(Introduction about, OpenDevice open, const OwnedDescriptor& control) {
  about.entries.push_back({"occupancy_hog", &launch_occupancy_hog, {}});
  auto* server = new Server(std::move(about), std::move(open), &take_float_notes);
  serve_connections(*server, control);
}

std::optional<OwnedDescriptor> take_control() {
  struct stat input = {};
  if (fstat(STDIN_FILENO, &input) != 0 || !S_ISSOCK(input.st_mode)) return std::nullopt;
  if (close_range(STDERR_FILENO + 1, ~0U, 0) != 0) {
    throw std::system_error(errno, std::generic_category(), "close_range");
  }
  OwnedDescriptor control(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  const OwnedDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  dup2(nothing.number(), STDIN_FILENO);  // a plug-in reads an empty file
  return control;
}

}  // namespace plumb::device::remote
