// SPDX-License-Identifier: Apache-2.0
#include "tools/run/run_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include "cases/drivers/point_text.h"
#include "faults/decode/planted_case.h"
#include "process/interrupts.h"
#include "tools/golden/golden_check.h"
#include "tools/golden/step_golden.h"

namespace plumb::tools {

namespace {

void check_decode_step(const cases::StepCase& which, const std::string& platform) {
  try {
    cases::planted_case(which, platform, 0);
  } catch (const cases::NotOnThisPlatform&) {  // the case will be skipped
  } catch (const std::invalid_argument&) {     // skipped too: an unsupported mode
  }
}

// Creates the folder, and checks that a file can be created in it.
void check_folder(const std::string& folder) {
  std::error_code trouble;
  std::filesystem::create_directories(folder, trouble);
  if (trouble) {
    throw UsageError(fmt::format("--dump: cannot write {}: {}", folder, trouble.message()));
  }
  check_writable(std::filesystem::path(folder) / "case.json");
}

bool captures(const cases::AnyCase& which) {
  using Mode = cases::Scenario::Mode;
  const cases::Case* const one = which.of_op();
  return one != nullptr &&
         (one->scenario->mode == Mode::full_graph || one->scenario->mode == Mode::concurrent);
}

}  // namespace

void check_point(const Selection& selection, const SelectedAny& selected) {
  if (selection.point.empty()) return;
  if (std::any_of(selected.cases.begin(), selected.cases.end(),
                  [](const cases::AnyCase& which) { return which.of_steps() != nullptr; })) {
    throw UsageError("--point is for single ops: the conditions of a decode step are parameters");
  }
  const cases::Point point = cases::point_from(selection.point);
  const auto& conditions = point.conditions;
  const bool own = conditions.checked || conditions.order != device::Order::forward;
  const bool simulated =
      own || conditions.page_guards || conditions.policy != device::Policy::early;
  if (own && !selection.plugin.empty()) {
    throw UsageError("--point: order and checked do not apply to the kernels of a plug-in");
  }
  for (const std::string& platform : selected.platforms) {
    if (!simulated || platform.starts_with("sim-")) continue;
    throw UsageError("--point: order, policy, checked and page_guards are for simulated platforms");
  }
}

void check_kernels(const Selection& selection, const SelectedAny& selected) {
  if (selection.kernels.empty() || std::ranges::any_of(selected.cases, captures)) return;
  throw UsageError(
      "--expect-kernel: no selected case of an op has a graph that is checked (full_graph and "
      "concurrent have)");
}

void check_reports(const RunArguments& arguments) {
  if (!arguments.json.empty() && arguments.json == arguments.junit) {
    throw UsageError("--json and --junit name the same file");
  }
  if (!arguments.json.empty()) check_writable(arguments.json);
  if (!arguments.junit.empty()) check_writable(arguments.junit);
  if (!arguments.html.empty()) {
    if (arguments.html == arguments.json || arguments.html == arguments.junit) {
      throw UsageError("--html names the file of another report");
    }
    check_writable(arguments.html);
  }
  if (!arguments.dump.empty()) check_folder(arguments.dump);
}

void check_rows(const std::vector<Task>& tasks) {
  for (const auto& [which, platform, number] : tasks) {
    process::Interrupts::check();
    if (!device::why_unavailable(platform).empty()) continue;
    if (const cases::StepCase* steps = which->of_steps()) {
      check_decode_step(*steps, platform);
    } else {
      const cases::Case& one = *which->of_op();
      one.op->make_problem(one.row, device::open_device(platform)->properties());
    }
  }
}

void check_goldens(const RunArguments& arguments, const std::vector<Task>& tasks) {
  const std::string folder = golden_folder(arguments);
  if (folder.empty()) return;
  if (!std::filesystem::is_directory(folder)) throw UsageError(folder + ": no folder of goldens");
  GoldenChecker checker(folder);
  for (const Task& task : tasks) {
    const cases::AnyCase& which = *task.which;
    const bool wanted =
        which.of_op() ? golden::wants_golden(*which.of_op()) : wants_golden(*which.of_steps());
    if (wanted) checker.find(task.platform, which);
  }
}

void check_dumps(const std::vector<Finished>& all) {
  for (const Finished& finished : all) {
    if (finished.dump_trouble.starts_with("cannot write")) {
      throw std::runtime_error(finished.dump_trouble);
    }
  }
}

}  // namespace plumb::tools
