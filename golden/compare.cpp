// SPDX-License-Identifier: Apache-2.0
#include "golden/compare.h"

#include <algorithm>

namespace plumb::golden {

namespace {

// Difference between this build's toolchain and the recorded one.
std::string toolchain_of(const CaseGolden& golden, const device::Properties& device,
                         const std::string& plugin) {
  const std::string op = golden.id.substr(0, golden.id.find('/'));
  return toolchain_difference(golden.provenance, provenance_of(op, device, plugin));
}

std::string reason_of_failure(const GoldenComparison& comparison, bool exact) {
  if (comparison.toolchain.empty() && !exact) {
    return "golden: bits differ on the toolchain that recorded the golden";
  }
  const bool rejected = std::any_of(comparison.drifts.begin(), comparison.drifts.end(),
                                    [](const TensorDrift& drift) { return drift.rejected; });
  return rejected ? "golden: the reference rejects what is computed now"
                  : "golden: differs more than two right results can";
}

}  // namespace

std::string_view name_of(Agreement agreement) {
  switch (agreement) {
    case Agreement::not_asked: return "not_asked";
    case Agreement::no_goldens: return "no_goldens";
    case Agreement::same: return "same";
    case Agreement::drifted: return "drifted";
    case Agreement::near_bound: return "near_bound";
    case Agreement::failed: return "failed";
  }
  return "?";
}

std::optional<GoldenComparison> compare_same(const CaseGolden& golden, const CaseGolden& other,
                                             const device::Properties& device,
                                             const std::string& plugin) {
  if (results_digest(golden) != results_digest(other)) return std::nullopt;
  return GoldenComparison{.agreement = Agreement::same,
                          .toolchain = toolchain_of(golden, device, plugin)};
}

GoldenComparison compare(const CaseGolden& golden, const GoldenCapture& capture, bool exact) {
  const device::Properties& device = capture.device();
  if (auto same = compare_same(golden, capture.golden(), device, capture.plugin())) return *same;
  GoldenComparison comparison{.toolchain = toolchain_of(golden, device, capture.plugin())};
  comparison.drifts = drift_between(golden, capture.golden(), &capture);
  const bool bitwise = exact || comparison.toolchain.empty();
  comparison.agreement = Agreement::drifted;
  for (const TensorDrift& drift : comparison.drifts) {
    if (drift.of_bound > kNear && comparison.agreement == Agreement::drifted) {
      comparison.agreement = Agreement::near_bound;
    }
    if (!bitwise && drift.other.empty() && !drift.rejected && !(drift.of_bound > 1)) continue;
    comparison.agreement = Agreement::failed;
    comparison.lines.push_back("golden: " + text_of(drift));
  }
  if (comparison.agreement == Agreement::failed) {
    comparison.lines.push_back(reason_of_failure(comparison, exact));
  }
  return comparison;
}

}  // namespace plumb::golden
