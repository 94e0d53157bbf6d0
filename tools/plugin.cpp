// SPDX-License-Identifier: Apache-2.0
#include "tools/plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "device/plugin/hosted_device.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using nlohmann::json;

Bytes describe(const std::string& path) {
  try {
    const PluginInfo info = info_of(path, loaded_plugin(path));
    return json::to_cbor({{"name", info.name}, {"version", info.version}, {"ops", info.ops}});
  } catch (const UsageError& error) {
    return json::to_cbor({{"refused", error.what()}});
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
  Worker worker({"/proc/self/exe", "list", "--plugin", path}, timeout);
  const auto answer = worker.run(0);
  if (const auto* death = std::get_if<Death>(&answer)) {
    throw UsageError(fmt::format("{}: while it was loaded, {}", path, death->why));
  }
  try {
    const json told = json::from_cbor(std::get<Bytes>(answer));
    if (told.contains("refused")) throw UsageError(told.at("refused"));
    return {path, told.at("name"), told.at("version"), told.at("ops")};
  } catch (const json::exception& error) {
    throw UsageError(fmt::format("{}: its process answered nonsense: {}", path, error.what()));
  }
}

int serve_plugin_info(const std::string& path) {
  return serve([&](std::uint64_t) { return describe(path); });
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

std::string lacks_the_op(const PluginInfo& plugin) {
  return fmt::format("{} lacks the op", plugin.name);
}

}  // namespace plumb::tools
