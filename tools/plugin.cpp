// SPDX-License-Identifier: Apache-2.0
#include "tools/plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cases/tables/contract.h"
#include "device/plugin/float_environment.h"
#include "device/plugin/hosted_device.h"
#include "device/remote/own_kernels.h"
#include "device/remote/plugin_process.h"
#include "device/remote/python_process.h"
#include "device/remote/serve_plugin.h"
#include "process/codec_fields.h"
#include "process/own_program.h"
#include "tools/own_ops_file.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using device::remote::is_python;
using device::remote::PluginProcess;

// By path of the plug-in.
std::map<std::string, std::shared_ptr<PluginProcess>>& plugin_processes() {
  static std::map<std::string, std::shared_ptr<PluginProcess>> processes;
  return processes;
}

// Answer of a process that has loaded a library.
struct PluginAnswer {
  std::string refused;  // reason why it is not a plug-in; "": it is one
  std::string name, version;
  std::vector<std::string> ops;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PluginAnswer, refused, name, version, ops)

constexpr std::string_view kServePlugin = "--serve-plugin";

std::string named(const std::string& name, const std::string& version) {
  return fmt::format("{}{}{}", name, version.empty() ? "" : " ", version);
}

std::shared_ptr<PluginProcess> start_plugin(const std::string& path) {
  try {
    if (is_python(path)) return device::remote::start_python_plugin(path);
    return PluginProcess::start({process::own_program(), std::string(kServePlugin), path});
  } catch (const device::remote::Refused& error) {
    throw UsageError(error.what());
  }
}

PluginInfo info_of_process(const std::string& path, const PluginProcess& process) {
  PluginInfo info{path, process.implementation().name, process.version(), {}};
  for (const device::OpEntry& entry : process.implementation().entries) {
    if (entry.op != "occupancy_hog") info.ops.emplace_back(entry.op);  // plumb's own kernel
  }
  return info;
}

PluginAnswer describe(const std::string& path) {
  try {
    const auto process = is_python(path) ? start_plugin(path) : nullptr;
    const device::Plugin* const plugin = process ? nullptr : &loaded_plugin(path);
    cases::check_contracts(process ? process->implementation() : plugin->implementation());
    const PluginInfo info = process ? info_of_process(path, *process) : info_of(path, *plugin);
    return {"", info.name, info.version, info.ops};
  } catch (const cases::BadContract& error) {
    return {fmt::format("{}: {}", path, error.what()), "", "", {}};
  } catch (const UsageError& error) {
    return {error.what(), "", "", {}};
  } catch (const device::remote::Died& death) {
    return {fmt::format("{}: while it was loaded, {}", path, death.what()), "", "", {}};
  }
}

}  // namespace

bool PluginInfo::offers(std::string_view op) const {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

std::string PluginInfo::text() const { return fmt::format("{} ({})", named(name, version), path); }

PluginInfo info_of(const std::string& path, const device::Plugin& plugin) {
  PluginInfo info{path, plugin.name(), plugin.version(), {}};
  for (const device::OpEntry& entry : plugin.implementation().entries) {
    info.ops.emplace_back(entry.op);
  }
  return info;
}

const device::Plugin& loaded_plugin(const std::string& path) {
  if (is_python(path)) {
    throw UsageError(fmt::format("{}: --in-process is for libraries, Python has a process", path));
  }
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
  return process::serve([&](const process::WorkerRequest&) {
    add_ops_of_parent();
    return process::encode(describe(path));
  });
}

cases::RunOptions with_plugin(cases::RunOptions options, const device::Plugin& plugin) {
  options.foreign = true;
  options.plugin = named(plugin.name(), plugin.version());
  options.implementation = [&plugin](std::string_view, bool) -> const device::Implementation& {
    return plugin.implementation();
  };
  options.open = [open = options.open](std::string_view name,
                                       const device::Conditions& conditions) {
    return std::unique_ptr<device::Device>(new device::HostedDevice(open(name, conditions)));
  };
  return options;
}

namespace {

// The running process of a plug-in. It is started if there is none.
const std::shared_ptr<PluginProcess>& running_process(const std::string& path) {
  std::shared_ptr<PluginProcess>& current = plugin_processes()[path];
  if (!current || current->has_died()) {
    current.reset();
    current = start_plugin(path);
  }
  return current;
}

}  // namespace

cases::RunOptions with_plugin_process(cases::RunOptions options, const std::string& path) {
  const std::shared_ptr<PluginProcess>& current = running_process(path);
  options.foreign = true;
  options.plugin = named(current->implementation().name, current->version());
  options.implementation = [process = current](std::string_view,
                                               bool) -> const device::Implementation& {
    return process->implementation();
  };
  options.open = [process = current](std::string_view name, const device::Conditions& conditions) {
    process->activate();
    return process->open(name, conditions);
  };
  return options;
}

cases::StepPlugin step_plugin(const device::Plugin& plugin) {
  const auto with_own = [&plugin](std::string_view platform,
                                  const std::set<std::string>& left_out) {
    return device::remote::with_own_kernels(plugin.implementation(),
                                            device::builtin_implementation(platform), left_out);
  };
  return {.plugin = &plugin.implementation(),
          .with_own = with_own,
          .open_device = with_plugin({}, plugin).open};
}

cases::StepPlugin step_plugin_process(const std::string& path) {
  const std::shared_ptr<PluginProcess> current = running_process(path);
  const auto with_own = [current](std::string_view platform,
                                  const std::set<std::string>& left_out) {
    return current->with_own(platform, left_out);
  };
  current->take_unsupported();  // discards refusals of an earlier case
  return {.plugin = &current->implementation(),
          .with_own = with_own,
          .open_device = with_plugin_process({}, path).open,
          .take_unsupported = [current] { return current->take_unsupported(); }};
}

bool plugin_has_died(const std::string& path) {
  const auto found = plugin_processes().find(path);
  return found != plugin_processes().end() && found->second && found->second->has_died();
}

void end_plugin_processes() { plugin_processes().clear(); }

std::vector<std::string> take_plugin_notes() {
  if (plugin_processes().empty()) return device::take_float_notes();
  std::vector<std::string> all;
  for (const auto& [path, process] : plugin_processes()) {
    if (!process) continue;  // the process could not be started
    const std::vector<std::string> notes = process->take_notes();
    all.insert(all.end(), notes.begin(), notes.end());
  }
  return all;
}

std::optional<std::string> plugin_to_serve(int count, char** arguments) {
  if (count != 3 || arguments[1] != kServePlugin) return std::nullopt;
  return arguments[2];
}

void serve_plugin_process(const std::string& path) {
  const auto control = device::remote::take_control();
  if (!control) {
    throw UsageError(fmt::format(
        "{} is an internal command of plumb: standard input is not a socket", kServePlugin));
  }
  device::remote::serve_plugin(path, *control);
}

std::string lacks_the_op(const PluginInfo& plugin) {
  return fmt::format("{} lacks the op", plugin.name);
}

}  // namespace plumb::tools
