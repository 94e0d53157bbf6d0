// SPDX-License-Identifier: Apache-2.0
#include "faults/decode/decode_step_run.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>
#include <vector>

#include "cases/tables/case_file.h"
#include "diagnosis/step_diagnosis.h"
#include "faults/decode/decode_faults.h"

namespace plumb::cases {

namespace {

const DecodeFault& find_fault(const Row& row) {
  std::vector<std::string> names;
  for (const auto* library : {&all_decode_faults(), &faults_within_numerics()}) {
    for (const DecodeFault& fault : *library) {
      if (fault.name == row.word("fault")) return fault;
      names.push_back(fault.name);
    }
  }
  const std::string nearest = nearest_name(row.word("fault"), names);
  throw BadRow(fmt::format("{}: unknown fault \"{}\"{}", row.where, row.word("fault"),
                           nearest.empty() ? "; plumb faults shows them"
                                           : fmt::format(" (did you mean \"{}\"?)", nearest)));
}

// "layers: layer 1 attention", or the op alone.
std::string place_of(const Finding& finding) {
  const bool named = !finding.call.empty() && finding.call != finding.op;
  return finding.op + (named ? " (" + finding.call + ")" : "");
}

Failure failure_of(const ServedCase& served, const WatchResult& watched) {
  Failure failure;
  failure.context = fmt::format("step {}: {}, {}", watched.findings.front().step,
                                text_of(served.shape), device::decode::name_of(served.setup.mode));
  for (const Finding& finding : watched.findings) {
    const std::string place = place_of(finding);
    std::string line = fmt::format("{}{}: {}", place.empty() ? "" : place + ": ",
                                   name_of(finding.detector), finding.text);
    // Target and drafter may have the same to say.
    if (!failure.lines.empty() && failure.lines.back() == line) continue;
    failure.lines.push_back(std::move(line));
  }
  return failure;
}

void watch_case(const ServedCase& served, bool diagnosed, CaseResult& result) {
  const DiagnosedWatch watched =
      diagnosed ? watch_and_diagnose(served.setup, served.shape)
                : DiagnosedWatch{watch(served.setup, served.shape), Diagnosis{}};
  result.points = 1;
  result.launches = watched.result.steps;
  result.comparisons = watched.result.calls_judged;
  if (watched.result.clean()) return;
  result.failures.push_back(failure_of(served, watched.result));
  result.findings = watched.result.findings;
  if (diagnosed) result.diagnosis = text_of(watched.diagnosis);
}

// Why the platform cannot have the case; "" if it can.
std::string why_skipped(const Case& which, const std::string& platform) {
  const std::string unavailable = device::why_unavailable(platform);
  if (!unavailable.empty()) return unavailable;
  const bool simulated = device::open_device(platform)->properties().simulated;
  return which.row.real_only && simulated ? "a row for real devices: the simulator cannot afford it"
                                          : "";
}

}  // namespace

ServedCase planted_case(const Case& which, const std::string& platform, std::uint64_t seed) {
  DecodeSetup base{.platform = platform};
  if (!which.row.word("fault").empty()) base = find_fault(which.row).inject(std::move(base));
  return served_case(which, std::move(base), seed);
}

CaseResult run_decode_step(const Case& which, const RunOptions& options, bool diagnosed) {
  CaseResult result;
  result.id = which.id();
  result.platform = options.platform;
  result.reason = why_skipped(which, options.platform);
  if (!result.reason.empty()) {
    result.outcome = Outcome::skipped;
    return result;
  }
  const auto start = std::chrono::steady_clock::now();
  try {
    watch_case(planted_case(which, options.platform, options.seed), diagnosed, result);
    settle(which.row, result);
  } catch (const NotOnThisPlatform& why) {
    result.outcome = Outcome::skipped;
    result.reason = why.what();
  } catch (const std::invalid_argument& why) {  // a mode that the model cannot have
    result.outcome = Outcome::skipped;
    result.reason = why.what();
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  result.phases.device = taken.count();
  return result;
}

}  // namespace plumb::cases
