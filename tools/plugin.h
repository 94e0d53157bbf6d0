// SPDX-License-Identifier: Apache-2.0
//
// --plugin LIB: queries a library in a separate process, which the library may crash, and gives
// cases access to its kernels.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/drivers/run.h"
#include "decode/watch/step_case_run.h"
#include "device/plugin/plugin.h"

namespace plumb::tools {

// What a plug-in declares about itself.
struct PluginInfo {
  std::string path, name, version;  // version: "" if none is declared
  std::vector<std::string> ops;
  bool offers(std::string_view op) const;
  std::string text() const;  // "name version (path)"
};

PluginInfo info_of(const std::string& path, const device::Plugin& plugin);

// The plug-in loaded into this process, at the first call. From then on the library can affect this
// process. Throws UsageError.
const device::Plugin& loaded_plugin(const std::string& path);

// Loads the library in a worker process and queries it. Throws UsageError: one line about the
// library.
PluginInfo probe_plugin(const std::string& path, double timeout);

// Runs in the worker process. "plumb list --plugin LIB" calls it when run as a worker.
int serve_plugin_info(const std::string& path);

// Options under which cases call the plug-in's kernels in this process.
cases::RunOptions with_plugin(cases::RunOptions options, const device::Plugin& plugin);

// Options under which cases call the plug-in's kernels in a separate process, started if none runs.
// The judging stays in this process. Cases may throw device::remote::Died. With several plug-ins,
// the kernels of the plug-in whose options opened a device last run. Not thread-safe.
cases::RunOptions with_plugin_process(cases::RunOptions options, const std::string& path);
// As above, for decode steps. plumb's own kernels run the ops that the plug-in lacks.
cases::StepPlugin step_plugin(const device::Plugin& plugin);
cases::StepPlugin step_plugin_process(const std::string& path);
// Whether the plug-in's process has ended by itself.
bool plugin_has_died(const std::string& path);
// Ends the processes of plug-ins, so that the next case starts new ones.
void end_plugin_processes();
// Notes about the plug-in's calls since the last query, from this process or its own. Throws
// device::remote::Died.
std::vector<std::string> take_plugin_notes();

// plugin_to_serve: the library, if the command line starts a plug-in's process.
// serve_plugin_process runs that process, which must end at once afterwards.
std::optional<std::string> plugin_to_serve(int count, char** arguments);
void serve_plugin_process(const std::string& path);

// Text that says that the plug-in lacks the op of a case.
std::string lacks_the_op(const PluginInfo& plugin);

}  // namespace plumb::tools
