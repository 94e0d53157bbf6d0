// SPDX-License-Identifier: Apache-2.0
#include "tools/agreement/plugin_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cases/studies/implementation_diff.h"
#include "device/remote/connection.h"
#include "process/codec_fields.h"
#include "process/own_program.h"
#include "tools/agreement/agreement_report.h"
#include "tools/output.h"
#include "tools/report.h"

namespace plumb::cases {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OutputDifference, tensor, rows, rows_differ, elements,
                                   elements_differ, bits_differ, of_bound, where, beyond)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ImplementationDiff, not_compared, outputs, base_wrong,
                                   change_wrong)

}  // namespace plumb::cases

namespace plumb::tools {

namespace {

constexpr double kCaseTimeout = 300;  // in seconds

// A case and the platform to run it on.
struct AgreementTask {
  cases::Case which;
  std::string platform;
  std::string name() const { return which.id() + " " + platform; }
};

std::vector<AgreementTask> tasks_of(const Selected& selected) {
  std::vector<AgreementTask> tasks;
  for (const cases::Case& which : selected.cases) {
    const bool affordable = which.row.trivial.empty() && !which.row.real_only;
    if (which.scenario->mode != cases::Scenario::Mode::eager || !affordable) continue;
    for (const std::string& platform : selected.platforms) tasks.push_back({which, platform});
  }
  return tasks;
}

// Runs in the worker process.
cases::ImplementationDiff diff_of(const AgreementTask& task,
                                  const std::vector<std::string>& plugins) {
  cases::RunOptions own;
  own.platform = task.platform;
  const bool two = plugins.size() == 2;
  try {
    return cases::diff_implementations(task.which,
                                       two ? with_plugin_process(own, plugins.front()) : own,
                                       with_plugin_process(own, plugins.back()));
  } catch (const device::remote::Died& death) {
    const bool base = two && plugin_has_died(plugins.front());
    end_plugin_processes();
    cases::ImplementationDiff diff;
    (base ? diff.base_wrong : diff.change_wrong) = fmt::format("crash: {}", death.what());
    return diff;
  }
}

int serve_diffs(const std::vector<AgreementTask>& tasks, const std::vector<std::string>& plugins) {
  return process::serve([&](const process::WorkerRequest& request) {
    const AgreementTask& task = tasks.at(request.task);
    if (request.name != task.name()) {
      throw std::runtime_error("its process has another list of cases: no " + request.name);
    }
    return process::encode(diff_of(task, plugins));
  });
}

struct ProbedSides {
  std::optional<PluginInfo> base;  // nullopt: plumb's own kernels
  PluginInfo change;
  bool base_has(std::string_view op) const { return !base || base->offers(op); }
};

ProbedSides probe(const std::vector<std::string>& plugins) {
  ProbedSides sides;
  if (plugins.size() == 2) sides.base = probe_plugin(plugins.front(), kCaseTimeout);
  sides.change = probe_plugin(plugins.back(), kCaseTimeout);
  return sides;
}

// Notes an op that one side lacks. An op that both sides lack is not noted.
void note_lacking(const ProbedSides& sides, const std::string& op, AgreementReport& report) {
  const bool in_base = sides.base && sides.base->offers(op), in_change = sides.change.offers(op);
  if (in_base == in_change || (in_change && !sides.base)) return;
  std::vector<std::string>& list = in_base ? report.only_base : report.only_change;
  if (std::ranges::find(list, op) == list.end()) list.push_back(op);
}

AgreementReport compare_all(const std::vector<AgreementTask>& tasks, const ProbedSides& sides) {
  AgreementReport report{
      .sides = {sides.base ? sides.base->text() : "plumb's own kernels", sides.change.text()},
      .cases = {},
      .only_base = {},
      .only_change = {}};
  process::Worker worker({.words = process::own_command_line(), .timeout = kCaseTimeout});
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const cases::Case& which = tasks[i].which;
    const std::string op(which.op->name);
    if (!sides.base_has(op) || !sides.change.offers(op)) {
      note_lacking(sides, op, report);
      continue;
    }
    auto answer = process::ask<cases::ImplementationDiff>(worker, i, tasks[i].name(), nullptr);
    cases::ImplementationDiff diff;
    if (const auto* death = std::get_if<process::Death>(&answer)) {
      diff.change_wrong = fmt::format("{}: {}", death->timed_out ? "timeout" : "crash", death->why);
    } else {
      diff = std::move(std::get<cases::ImplementationDiff>(answer));
    }
    report.cases.push_back({which.id(), op, which.row.name, tasks[i].platform, std::move(diff)});
  }
  return report;
}

}  // namespace

int plugin_agreement(const AgreementArguments& arguments) {
  if (arguments.plugins.size() > 2) {
    throw UsageError("agreement compares two plug-ins at most: --plugin BASE --plugin CHANGE");
  }
  const Selected selected = select(arguments.selection);
  const std::vector<AgreementTask> tasks = tasks_of(selected);
  if (process::is_worker()) return serve_diffs(tasks, arguments.plugins);
  for (const std::string& platform : selected.platforms) {
    const std::string why = device::why_unavailable(platform);
    if (!why.empty()) throw UsageError(platform + ": " + why);
  }
  if (!arguments.json.empty()) check_writable(arguments.json);
  const AgreementReport report = compare_all(tasks, probe(arguments.plugins));
  const auto compared = [](const ComparedCase& one) { return one.diff.not_compared.empty(); };
  if (report.cases.empty()) {
    throw UsageError("no eager case is selected whose op both implementations have");
  }
  put(text_of(report));
  if (!arguments.json.empty()) write_file(arguments.json, to_json(report));
  if (std::ranges::none_of(report.cases, compared)) return 2;
  return report.fails() ? 1 : 0;
}

}  // namespace plumb::tools
