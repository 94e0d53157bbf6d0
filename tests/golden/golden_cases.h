// SPDX-License-Identifier: Apache-2.0
//
// Cases and kernels with which tests of goldens change results.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "faults/faults.h"
#include "golden/compare.h"
#include "golden/regenerate.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::device::golden_mutant {
device::OpEntry rms_norm();
}

namespace plumb::golden {

inline const Author kAuthor{"commit", "generator", "a test"};

inline std::vector<cases::Case> cases_of(const std::string& op) {
  std::vector<cases::Case> found = cases::cases_of(cases::find_op(op));
  std::erase_if(found, [](const cases::Case& which) { return !wants_golden(which); });
  return found;
}

inline std::vector<std::string> ids_of(const std::vector<cases::Case>& cases) {
  std::vector<std::string> ids;
  for (const cases::Case& which : cases) ids.push_back(which.id());
  return ids;
}

inline cases::RunOptions options_on(const std::string& platform) {
  cases::RunOptions options;
  options.platform = platform;
  return options;
}

// plumb's kernels, with rms_norm's 1/rms rounded up.
inline cases::RunOptions rounded_up(const std::string& platform) {
  cases::Mutant mutant{};
  mutant.op = "rms_norm";
  mutant.entry = device::golden_mutant::rms_norm();
  return cases::with_mutant(options_on(platform), mutant);
}

inline cases::RunOptions truncating(const std::string& platform) {
  for (const cases::Mutant& mutant : cases::all_mutants()) {
    if (mutant.name == "rms_norm_truncates") {
      return cases::with_mutant(options_on(platform), mutant);
    }
  }
  throw std::logic_error("no such mutant");
}

inline GoldenFile empty_file(const std::string& op) {
  return {.platform = "sim-sm90", .op = op, .simulated = true};
}

inline GoldenFile goldens_of(const std::string& op) {
  const auto wanted = cases_of(op);
  return difference_of(empty_file(op), wanted, ids_of(wanted), options_on("sim-sm90"), kAuthor)
      .next;
}

inline cases::Case first_moved_case() {
  for (const cases::Case& which : cases_of("rms_norm")) {
    const GoldenCapture before(which, options_on("sim-sm90")), after(which, rounded_up("sim-sm90"));
    if (results_digest(before.golden()) != results_digest(after.golden())) return which;
  }
  throw std::logic_error("the mutant moves nothing");
}

}  // namespace plumb::golden
