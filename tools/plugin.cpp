// SPDX-License-Identifier: Apache-2.0
#include "tools/plugin.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "device/plugin/float_environment.h"
#include "device/plugin/hosted_device.h"
#include "device/remote/plugin_process.h"
#include "device/remote/serve_plugin.h"
#include "process/codec_fields.h"
#include "process/own_program.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using device::remote::PluginProcess;

std::shared_ptr<PluginProcess>& plugin_process() {
  static std::shared_ptr<PluginProcess> process;
  return process;
}

// What a process that has loaded the library says of it.
struct PluginAnswer {
  std::string refused;  // why it is no plug-in; "": it is one
  std::string name, version;
  std::vector<std::string> ops;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PluginAnswer, refused, name, version, ops)

constexpr std::string_view kServePlugin = "--serve-plugin";

PluginAnswer describe(const std::string& path) {
  try {
    const PluginInfo info = info_of(path, loaded_plugin(path));
    return {"", info.name, info.version, info.ops};
  } catch (const UsageError& error) {
    return {error.what(), "", "", {}};
  }
}

}  // namespace

bool PluginInfo::offers(std::string_view op) const {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

std::string PluginInfo::text() const {
  return fmt::format("{}{}{} ({})", name, version.empty() ? "" : " ", version, path);
}

PluginInfo info_of(const std::string& path, const device::Plugin& plugin) {
  PluginInfo info{path, plugin.name(), plugin.version(), {}};
  const plumb_implementation& table = plugin.implementation();
  for (int i = 0; i < table.entry_count; ++i) info.ops.emplace_back(table.entries[i].op);
  return info;
}

const device::Plugin& loaded_plugin(const std::string& path) {
  try {
    static const device::Plugin plugin(path);
    return plugin;
  } catch (const device::PluginError& error) {
    throw UsageError(error.what());
  }
}

PluginInfo probe_plugin(const std::string& path, double timeout) {
  process::Worker worker(
      {.words = {process::own_program(), "list", "--plugin", path}, .timeout = timeout});
  const auto answer = process::ask<PluginAnswer>(worker, 0, path, nullptr);
  if (const auto* death = std::get_if<process::Death>(&answer)) {
    throw UsageError(fmt::format("{}: while it was loaded, {}", path, death->why));
  }
  const auto& told = std::get<PluginAnswer>(answer);
  if (!told.refused.empty()) throw UsageError(told.refused);
  return {path, told.name, told.version, told.ops};
}

int serve_plugin_info(const std::string& path) {
  return process::serve(
      [&](const process::WorkerRequest&) { return process::encode(describe(path)); });
}

cases::RunOptions with_plugin(cases::RunOptions options, const device::Plugin& plugin) {
  options.foreign = true;
  options.implementation = [&plugin](std::string_view, bool) -> const plumb_implementation& {
    return plugin.implementation();
  };
  options.open = [open = options.open](std::string_view name,
                                       const device::Conditions& conditions) {
    return std::unique_ptr<device::Device>(new device::HostedDevice(open(name, conditions)));
  };
  return options;
}

cases::RunOptions with_plugin_process(cases::RunOptions options, const std::string& path) {
  std::shared_ptr<PluginProcess>& current = plugin_process();
  if (!current || current->has_died()) {
    current.reset();
    try {
      current = PluginProcess::start({process::own_program(), std::string(kServePlugin), path});
    } catch (const device::remote::Refused& error) {
      throw UsageError(error.what());
    }
  }
  options.foreign = true;
  options.implementation = [process = current](std::string_view,
                                               bool) -> const plumb_implementation& {
    return process->implementation();
  };
  options.open = [process = current](std::string_view name, const device::Conditions& conditions) {
    return process->open(name, conditions);
  };
  return options;
}

void end_plugin_process() { plugin_process().reset(); }

std::vector<std::string> take_plugin_notes() {
  return plugin_process() ? plugin_process()->take_notes() : device::take_float_notes();
}

std::optional<std::string> plugin_to_serve(int count, char** arguments) {
  if (count != 3 || arguments[1] != kServePlugin) return std::nullopt;
  return arguments[2];
}

void serve_plugin_process(const std::string& path) {
  struct stat input = {};
  if (fstat(STDIN_FILENO, &input) != 0 || !S_ISSOCK(input.st_mode)) {
    throw UsageError(
        fmt::format("{} is for plumb itself: standard input is no socket", kServePlugin));
  }
  // Not one of the process that judges: its channel would let a plug-in answer in its place.
  if (close_range(STDERR_FILENO + 1, ~0U, 0) != 0) {
    throw std::system_error(errno, std::generic_category(), "close_range");
  }
  const device::remote::OwnedDescriptor control(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  const device::remote::OwnedDescriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  dup2(nothing.number(), STDIN_FILENO);  // what a plug-in reads
  device::remote::serve_plugin(path, control);
}

std::string lacks_the_op(const PluginInfo& plugin) {
  return fmt::format("{} lacks the op", plugin.name);
}

}  // namespace plumb::tools
