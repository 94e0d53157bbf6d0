// SPDX-License-Identifier: Apache-2.0
#include "tools/golden/golden_check.h"

#include <fmt/format.h>

#include <filesystem>

#include "process/shell.h"
#include "tools/golden/step_golden.h"
#include "tools/run/installed_files.h"
#include "tools/selection.h"

namespace plumb::tools {

std::string own_goldens() {
  const std::string installed = installed_files();
  const std::string folder = installed.empty() ? PLUMB_GOLDENS : installed + "/golden";
  return std::filesystem::is_directory(folder) ? folder : "";
}

std::string regen_options(const Selection& selection, const std::optional<std::string>& goldens) {
  std::string text;
  if (!selection.plugin.empty()) text += " --plugin " + process::shell_quoted(selection.plugin);
  for (const std::string& file : selection.case_files) {
    text += " --cases " + process::shell_quoted(file);
  }
  if (goldens) text += " --goldens " + process::shell_quoted(*goldens);
  return text;
}

const golden::CaseGolden* GoldenChecker::find(const std::string& platform,
                                              const cases::AnyCase& which) {
  const std::lock_guard lock(mutex_);
  const std::string op(which.op()), name = golden::file_name(platform, op);
  auto found = files_.find(name);
  if (found == files_.end()) found = files_.emplace(name, store_.load(platform, op)).first;
  return found->second ? found->second->find(which.id()) : nullptr;
}

golden::GoldenComparison GoldenChecker::missing(const std::string& platform,
                                                const std::string& id) const {
  golden::GoldenComparison comparison{.agreement = golden::Agreement::failed};
  comparison.lines = {fmt::format(
      "golden: none for this case; plumb golden regen --platform {} --case {}{} --reason \"...\"",
      platform, id, regen_options_)};
  return comparison;
}

golden::GoldenComparison GoldenChecker::check(const cases::Case& which,
                                              const cases::RunOptions& options, bool exact) {
  golden::GoldenComparison comparison;
  if (!golden::wants_golden(which)) return comparison;
  comparison.agreement = golden::Agreement::no_goldens;
  if (!store_.has(options.platform)) return comparison;
  const golden::CaseGolden* golden = find(options.platform, which);
  try {
    const golden::GoldenCapture capture(which, options);
    if (golden) return compare(*golden, capture, exact);
    if (!capture.deterministic()) return {};
  } catch (const cases::Unsupported&) {
    return {};  // a plug-in that does not take this shape
  } catch (const device::DeviceError& error) {
    comparison.agreement = golden::Agreement::failed;
    comparison.lines = {fmt::format("golden: {}", error.what())};
    return comparison;
  }
  return missing(options.platform, which.id());
}

golden::GoldenComparison GoldenChecker::check(const cases::StepCase& which,
                                              const cases::RunOptions& options, bool exact) {
  golden::GoldenComparison comparison;
  if (!wants_golden(which)) return comparison;
  comparison.agreement = golden::Agreement::no_goldens;
  if (!store_.has(options.platform)) return comparison;
  std::string why;
  const auto steps = digests_of(which, options, why);
  if (steps) return check_steps(which, options, *steps, exact);
  comparison.agreement = golden::Agreement::failed;
  comparison.lines = {"golden: the steps gave no results: " + why};
  return comparison;
}

golden::GoldenComparison GoldenChecker::check_steps(const cases::StepCase& which,
                                                    const cases::RunOptions& options,
                                                    const cases::CallDigests& steps, bool exact) {
  if (!store_.has(options.platform)) return {.agreement = golden::Agreement::no_goldens};
  const golden::CaseGolden* golden = find(options.platform, which);
  if (golden == nullptr) return missing(options.platform, which.id());
  const device::Properties device = options.open(options.platform, {})->properties();
  return compare_steps(*golden, which, steps, device, exact);
}

std::optional<golden::GoldenComparison> GoldenChecker::check_launched(
    const cases::Case& which, const cases::RunOptions& options,
    const golden::CaseGolden& launched) {
  const golden::CaseGolden* golden = find(options.platform, which);
  if (golden == nullptr) return std::nullopt;
  return golden::compare_same(*golden, launched, options.open(options.platform, {})->properties(),
                              options.plugin);
}

}  // namespace plumb::tools
