// SPDX-License-Identifier: Apache-2.0
//
// --plugin LIB: what a command needs to know of the library, found out in a process that may die of
// it, and the cases' way to its kernels.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/drivers/run.h"
#include "decode/watch/step_case_run.h"
#include "device/plugin/plugin.h"

namespace plumb::tools {

// What a plug-in says of itself.
struct PluginInfo {
  std::string path, name, version;  // version: "" if it names none
  std::vector<std::string> ops;
  bool offers(std::string_view op) const;
  std::string text() const;  // "name version (path)"
};

PluginInfo info_of(const std::string& path, const device::Plugin& plugin);

// The plug-in of this process, loaded at the first call: what it does to the process is done from
// then on. Throws UsageError.
const device::Plugin& loaded_plugin(const std::string& path);

// Loads the library in a worker process and asks it. Throws UsageError: one line about the library.
PluginInfo probe_plugin(const std::string& path, double timeout);

// The worker's side: "plumb list --plugin LIB" as a worker serves this.
int serve_plugin_info(const std::string& path);

// Options under which cases call the plug-in's kernels in this process.
cases::RunOptions with_plugin(cases::RunOptions options, const device::Plugin& plugin);

// The same in a process of the plug-in's own, which is started if none runs. What is judged with
// stays in this one. Cases under these options throw device::remote::Died. With several plug-ins,
// the kernels of the one whose options have opened a device last run. Not for several threads.
cases::RunOptions with_plugin_process(cases::RunOptions options, const std::string& path);
// The same for decode steps, in which plumb's own kernels stand in for the ops that the plug-in
// does not have.
cases::StepPlugin step_plugin(const device::Plugin& plugin);
cases::StepPlugin step_plugin_process(const std::string& path);
// Whether the plug-in's process has ended by itself.
bool plugin_has_died(const std::string& path);
// The next case gets fresh processes.
void end_plugin_processes();
// What was noticed of the plug-in's calls since the last time, in whichever process it is. Throws
// device::remote::Died.
std::vector<std::string> take_plugin_notes();

// The library of a command line that starts a plug-in's process, and the whole life of that
// process, which has to end at once when it returns.
std::optional<std::string> plugin_to_serve(int count, char** arguments);
void serve_plugin_process(const std::string& path);

// The case of an op that the plug-in lacks.
std::string lacks_the_op(const PluginInfo& plugin);

}  // namespace plumb::tools
