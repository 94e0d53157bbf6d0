// SPDX-License-Identifier: Apache-2.0
#include "tools/golden/plugin_golden.h"

#include <optional>
#include <vector>

#include "device/remote/codec.h"
#include "tools/plugin.h"

namespace plumb::tools {

namespace {

golden::NewResult no_result(const std::string& id, const std::string& why) {
  return {.golden = {.id = id},
          .provenance = [] { return golden::Provenance(); },
          .drifts = [](const golden::CaseGolden&) { return std::vector<golden::TensorDrift>(); },
          .rejected = [why] { return std::vector{why}; }};
}

}  // namespace

golden::Compute compute_plugin(const cases::Case& which, const std::string& platform,
                               const std::string& plugin) {
  return [which, platform, plugin]() -> std::optional<golden::NewResult> {
    try {
      return golden::result_of(which, with_plugin_process({.platform = platform}, plugin));
    } catch (const cases::Unsupported&) {
      return std::nullopt;
    } catch (const device::DeviceError& error) {
      return no_result(which.id(), error.what());
    } catch (const device::remote::Died& death) {
      end_plugin_processes();
      return no_result(which.id(), death.what());
    }
  };
}

golden::GoldenComparison check_plugin(const cases::Case& which, const std::string& platform,
                                      const std::string& plugin, bool exact,
                                      GoldenChecker& checker) {
  try {
    return checker.check(which, with_plugin_process({.platform = platform}, plugin), exact);
  } catch (const device::remote::Died& death) {
    end_plugin_processes();
    return {.agreement = golden::Agreement::failed,
            .lines = {std::string("golden: ") + death.what()}};
  }
}

}  // namespace plumb::tools
