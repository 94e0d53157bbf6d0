// SPDX-License-Identifier: Apache-2.0
#include "tools/golden/step_golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "diagnosis/decode_step_run.h"

namespace plumb::tools {

namespace {

using cases::CallDigests;
using golden::CaseGolden;
using golden::TensorGolden;

constexpr const char* kCalls = "calls";

std::size_t most_calls(const CallDigests& steps) {
  std::size_t most = 0;
  for (const auto& step : steps) most = std::max(most, step.size());
  return most;
}

std::int64_t columns_of(const CaseGolden& golden) {
  return golden.outputs.empty() ? 0 : golden.outputs.front().columns();
}

CaseGolden golden_with_columns(const cases::StepCase& which, const CallDigests& steps,
                               std::size_t columns) {
  columns = std::max(columns, most_calls(steps));
  const auto rows = static_cast<std::int64_t>(steps.size());
  TensorGolden calls{.name = kCalls,
                     .dtype = cases::Dtype::i64,
                     .format = std::string(golden::kCallDigests),
                     .shape = {rows, static_cast<std::int64_t>(columns)},
                     .strides = {static_cast<std::int64_t>(columns), 1}};
  calls.values.resize(steps.size() * calls.row_bytes());
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (std::size_t call = 0; call < steps[step].size(); ++call) {
      std::memcpy(calls.values.data() + step * calls.row_bytes() + call * sizeof(std::uint64_t),
                  &steps[step][call].digest, sizeof(std::uint64_t));
    }
  }
  calls.digest = golden::digest_of(calls.values);
  return {.id = which.id(), .outputs = {std::move(calls)}};
}

// Names the first call that moved.
void name_call(const CaseGolden& golden, const CallDigests& steps, golden::TensorDrift& drift) {
  const TensorGolden& calls = golden.outputs.front();
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (std::size_t call = 0; call < steps[step].size(); ++call) {
      std::uint64_t had = 0;
      std::memcpy(&had,
                  calls.values.data() + step * calls.row_bytes() + call * sizeof(std::uint64_t),
                  sizeof had);
      if (had == steps[step][call].digest) continue;
      drift.where = fmt::format("step {}, call {}, {}", step, call, steps[step][call].call);
      return;
    }
  }
}

std::vector<golden::TensorDrift> drifts_of(const CaseGolden& golden, const CaseGolden& now,
                                           const CallDigests& steps) {
  std::vector<golden::TensorDrift> drifts = golden::drift_between(golden, now);
  for (golden::TensorDrift& drift : drifts) {
    if (drift.of_calls) name_call(golden, steps, drift);
  }
  return drifts;
}

}  // namespace

bool wants_golden(const cases::StepCase& which) {
  return which.row.golden && which.mode == device::decode::GraphMode::full;
}

CaseGolden golden_of(const cases::StepCase& which, const CallDigests& steps) {
  return golden_with_columns(which, steps, 0);
}

std::optional<CallDigests> digests_of(const cases::StepCase& which,
                                      const cases::RunOptions& options, std::string& why) {
  cases::RunOptions digesting = options;
  digesting.digests_calls = true;
  digesting.divides_schedules = false;
  cases::StepCaseResult one = cases::run_decode_step(which, digesting, false);
  if (one.result.outcome == cases::Outcome::passed) return std::move(one.digests);
  why = one.result.reason;
  if (!one.result.failures.empty() && !one.result.failures.front().lines.empty()) {
    why = one.result.failures.front().lines.front();
  }
  return std::nullopt;
}

golden::GoldenComparison compare_steps(const CaseGolden& golden, const cases::StepCase& which,
                                       const CallDigests& steps, const device::Properties& device,
                                       bool exact) {
  const CaseGolden now =
      golden_with_columns(which, steps, static_cast<std::size_t>(columns_of(golden)));
  if (auto same = golden::compare_same(golden, now, device)) return *same;
  golden::GoldenComparison comparison{
      .toolchain = golden::toolchain_difference(golden.provenance,
                                                golden::provenance_of(cases::kDecodeStep, device))};
  comparison.drifts = drifts_of(golden, now, steps);
  const bool other = std::ranges::any_of(
      comparison.drifts, [](const golden::TensorDrift& drift) { return !drift.other.empty(); });
  comparison.agreement = golden::Agreement::drifted;
  if (!exact && !comparison.toolchain.empty() && !other) return comparison;
  comparison.agreement = golden::Agreement::failed;
  for (const golden::TensorDrift& drift : comparison.drifts) {
    comparison.lines.push_back("golden: " + text_of(drift));
  }
  comparison.lines.emplace_back(
      comparison.toolchain.empty() ? "golden: bits differ on the toolchain that recorded the golden"
                                   : "golden: bits differ");
  return comparison;
}

golden::Compute compute_steps(const cases::StepCase& which, const cases::RunOptions& options) {
  return [which, options]() -> std::optional<golden::NewResult> {
    std::string why;
    std::optional<CallDigests> steps = digests_of(which, options, why);
    std::vector<std::string> rejected;
    if (!steps) rejected.push_back(why);
    const CallDigests digests = steps ? std::move(*steps) : CallDigests{};
    return golden::NewResult{.golden = golden_of(which, digests),
                             .provenance =
                                 [options] {
                                   return golden::provenance_of(
                                       cases::kDecodeStep,
                                       options.open(options.platform, {})->properties());
                                 },
                             .drifts =
                                 [which, digests](const CaseGolden& had) {
                                   return drifts_of(had, golden_of(which, digests), digests);
                                 },
                             .rejected = [rejected] { return rejected; }};
  };
}

}  // namespace plumb::tools
