// SPDX-License-Identifier: Apache-2.0
#include "tools/plugin.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "device/plugin/hosted_device.h"
#include "device/remote/serve_plugin.h"
#include "process/codec.h"
#include "process/own_program.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

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
  const device::remote::Descriptor control(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  const device::remote::Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  dup2(nothing.number(), STDIN_FILENO);  // what a plug-in reads
  device::remote::serve_plugin(path, control);
}

std::string lacks_the_op(const PluginInfo& plugin) {
  return fmt::format("{} lacks the op", plugin.name);
}

}  // namespace plumb::tools
