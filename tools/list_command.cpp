// SPDX-License-Identifier: Apache-2.0
//
// plumb list: lists cases, or with an option ops, arguments, contracts, platforms, scenarios or
// faults.
#include <fmt/format.h>

#include "cases/studies/contract_table.h"
#include "cases/tables/op_arguments.h"
#include "device/device.h"
#include "faults/decode/decode_faults.h"
#include "process/worker.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/own_ops_file.h"
#include "tools/plugin.h"

namespace plumb::tools {

namespace {

constexpr double kProbeTimeout = 300;  // in seconds

}  // namespace

int list_command(const ListArguments& arguments) {
  const std::string& path = arguments.selection.plugin;
  if (process::is_worker()) return serve_plugin_info(path);
  add_ops_of(arguments.selection.own_ops);
  std::optional<PluginInfo> plugin;
  if (!path.empty()) plugin = probe_plugin(path, kProbeTimeout);
  const auto has = [&](std::string_view op) { return !plugin || plugin->offers(op); };
  if (arguments.ops) {
    for (const cases::OpDefinition& op : cases::all_ops()) {
      if (has(op.name)) put_format("{:<46}{}\n", op.name, op.summary);
    }
    return 0;
  }
  if (arguments.arguments) {
    put_format("{}", cases::arguments_page());
    return 0;
  }
  if (arguments.contracts) {
    put_format("{}", cases::contract_page());
    return 0;
  }
  if (arguments.platforms) {
    for (const std::string& name : device::known_platforms()) {
      const std::string why = device::why_unavailable(name);
      put_format("{:<14}{}\n", name, why.empty() ? "available" : why);
    }
    return 0;
  }
  if (arguments.scenarios) {
    for (const cases::Scenario& s : cases::all_scenarios()) put_format("{:<20}{}\n", s.name, s.why);
    for (const cases::GraphModeName& mode : cases::graph_mode_names()) {
      put_format("{:<20}decode steps: {}\n", mode.name, mode.why);
    }
    return 0;
  }
  if (arguments.faults) {
    for (const auto* faults : {&cases::all_decode_faults(), &cases::faults_within_numerics()}) {
      for (const cases::DecodeFault& fault : *faults) {
        put_format("{:<44}{}\n", fault.name, fault.stands_for);
      }
    }
    return 0;
  }
  for (const cases::AnyCase& which :
       select_any(arguments.selection, CaseKinds::ops_and_decode_steps).cases) {
    if (!has(which.op())) continue;
    put_format("{}{}\n", which.id(), arguments.why ? "\n    " + which.row().why : "");
  }
  return 0;
}

}  // namespace plumb::tools
