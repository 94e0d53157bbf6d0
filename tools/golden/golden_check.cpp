// SPDX-License-Identifier: Apache-2.0
#include "tools/golden/golden_check.h"

#include <fmt/format.h>

#include <filesystem>

#include "tools/run/installed_files.h"

namespace plumb::tools {

std::string own_goldens() {
  const std::string installed = installed_files();
  const std::string folder = installed.empty() ? PLUMB_GOLDENS : installed + "/golden";
  return std::filesystem::is_directory(folder) ? folder : "";
}

const golden::CaseGolden* GoldenChecker::find(const std::string& platform,
                                              const cases::Case& which) {
  const std::lock_guard lock(mutex_);
  const std::string op(which.op->name), name = golden::file_name(platform, op);
  auto found = files_.find(name);
  if (found == files_.end()) found = files_.emplace(name, store_.load(platform, op)).first;
  return found->second ? found->second->find(which.id()) : nullptr;
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
  } catch (const device::DeviceError& error) {
    comparison.lines = {fmt::format("golden: {}", error.what())};
  }
  comparison.agreement = golden::Agreement::failed;
  if (!comparison.lines.empty()) return comparison;
  comparison.lines = {fmt::format(
      "golden: none for this case; plumb golden regen --platform {} --case {} --reason \"...\"",
      options.platform, which.id())};
  return comparison;
}

std::optional<golden::GoldenComparison> GoldenChecker::check_launched(
    const cases::Case& which, const cases::RunOptions& options,
    const golden::CaseGolden& launched) {
  const golden::CaseGolden* golden = find(options.platform, which);
  if (golden == nullptr) return std::nullopt;
  return golden::compare_same(*golden, launched, options.open(options.platform, {})->properties());
}

}  // namespace plumb::tools
