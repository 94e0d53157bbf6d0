// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/step_trial.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "diagnosis/step_run.h"

namespace plumb::cases {

namespace {

// Budget of a diagnosis, in small steps (up to kBytesOfSmallStep of values). Trying one fault costs
// all steps up to the failing one; a larger step counts as several small ones.
constexpr std::int64_t kMostSteps = 1000, kStepsOfCapture = 4;
constexpr std::int64_t kBytesOfSmallStep = std::int64_t{16} << 20;
constexpr std::int64_t kMostLater = 3;

// Plants a fault into a setup without faults. Only the fault's changes to plumb's own code are
// taken: its other settings choose a setup in which it shows well.
DecodeSetup with_fault(const DecodeSetup& clean, const Plant& plant) {
  const DecodeSetup planted = plant(clean);
  DecodeSetup setup = clean;
  setup.policies = planted.policies;
  setup.implementation = planted.implementation;
  setup.wrap = planted.wrap;
  return setup;
}

using Signature = std::set<std::pair<Detector, std::string>>;
Signature signature_of(const std::vector<Finding>& findings) {
  Signature signature;
  for (const Finding& finding : findings) signature.emplace(finding.detector, finding.op);
  return signature;
}

double share_in_common(const Signature& a, const Signature& b) {
  const auto common =
      std::count_if(a.begin(), a.end(), [&](const auto& entry) { return b.contains(entry); });
  return static_cast<double>(common) / static_cast<double>(std::ssize(a) + std::ssize(b) - common);
}

// Removes all hexadecimal digits (also the letters a to f in words), because addresses, sizes and
// steps differ from run to run.
std::string without_numbers(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
  return text;
}

std::int64_t small_steps_in(const StepValues& values) {
  std::int64_t bytes = 0;
  for (const CallValues& call : values) {
    for (const HostTensor& tensor : call.tensors) bytes += std::ssize(tensor.bytes());
  }
  return 1 + bytes / kBytesOfSmallStep;
}

}  // namespace

double FaultTrial::sum() const {
  return first.score() + whole.score() + findings.value_or(0) + later + (exact ? 1 : 0);
}

Explanation FaultTrial::explanation() const { return {fault->name, fault->stands_for, first}; }

StepTrial::StepTrial(const StepEvidence& evidence)
    : evidence_(evidence), clean_(as_it_should_be(evidence.setup)) {
  if (evidence.values.empty()) return;
  StepRun right = run_to_step(clean_, evidence.shape, step());
  builds_ = right.builds;
  matcher_.emplace(evidence.values, std::move(right.values));
}

bool StepTrial::threw() const {
  return std::any_of(evidence_.findings.begin(), evidence_.findings.end(),
                     [](const Finding& one) { return one.detector == Detector::error; });
}

bool StepTrial::is_affordable() const { return spent_ <= kMostSteps; }

bool StepTrial::fails_without_any() const {
  if (by_values()) return false;
  if (!threw()) return findings_in_common(clean_) >= kSameFindings;
  FaultTrial clean{nullptr, clean_};
  take_steps(clean);
  return threw_the_same(clean);
}

std::optional<FaultTrial> StepTrial::run(const DecodeFault& fault) {
  std::optional<FaultTrial> best = run(fault, fault.inject);
  if (!best || !by_values() || !fault.sweep) return best;
  for (const Plant& plant : fault.sweep(builds_)) {
    if (best->first.score() >= kCertain) break;
    std::optional<FaultTrial> one = run(fault, plant);
    if (one && one->first.score() > best->first.score()) best = std::move(one);
  }
  return best;
}

std::optional<FaultTrial> StepTrial::run(const DecodeFault& fault, const Plant& plant) {
  std::optional<FaultTrial> one;
  try {
    one = FaultTrial{&fault, with_fault(clean_, plant)};
  } catch (const NotOnThisPlatform&) {
    return std::nullopt;
  }
  if (!is_possible(*one)) return std::nullopt;
  if (matcher_ || threw()) {
    spent_ += (step() + kStepsOfCapture) * small_steps_in(evidence_.values);
    take_steps(*one);
  }
  return one;
}

// A wrong kernel of an op can only explain a failure whose first wrong call is one of that op.
bool StepTrial::is_possible(const FaultTrial& one) const {
  const std::string& broken = one.fault->broken;
  return !one.setup.implementation || broken == evidence_.findings.front().op || threw() ||
         (matcher_ && broken == matcher_->first_wrong_op());
}

// Runs the steps with the fault. If the failed steps threw an exception, first runs them in an
// engine that records no values, because the exception must come from it.
void StepTrial::take_steps(FaultTrial& one) const {
  try {
    if (threw()) run_to_step(one.setup, evidence_.shape, step(), std::nullopt);
    const StepRun run = run_to_step(one.setup, evidence_.shape, step());
    if (!matcher_) return;
    one.first = matcher_->match_first(run.values);
    one.whole = matcher_->match_all(run.values);
    one.exact = one.whole.is_exact();
  } catch (const std::exception& error) {
    one.error = error.what();
  }
}

void StepTrial::look_at_findings(FaultTrial& one) const {
  if (!one.findings) one.findings = findings_in_common(one.setup);
}

double StepTrial::findings_in_common(const DecodeSetup& setup) const {
  const WatchResult result = watch(setup, evidence_.shape);
  if (result.clean() || result.findings.front().step != step()) return 0;
  return share_in_common(signature_of(evidence_.findings), signature_of(result.findings));
}

bool StepTrial::look_at_later(std::int64_t later, std::span<FaultTrial> rivals) const {
  if (later >= evidence_.shape.steps || later > step() + kMostLater) return false;
  try {
    const StepRun observed = run_to_step(evidence_.setup, evidence_.shape, later);
    StepRun right = run_to_step(clean_, evidence_.shape, later);
    const StepMatcher matcher(observed.values, std::move(right.values));
    for (FaultTrial& one : rivals) {
      const StepRun run = run_to_step(one.setup, evidence_.shape, later);
      const Match match = matcher.match_all(run.values);
      one.later += match.score();
      one.exact = one.exact && match.is_exact();
    }
  } catch (const std::exception&) {
    return false;  // after a failing step, later steps may throw
  }
  return true;
}

bool StepTrial::threw_the_same(const FaultTrial& one) const {
  const auto& findings = evidence_.findings;
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.detector == Detector::error &&
           without_numbers(finding.text) == without_numbers(one.error);
  });
}

}  // namespace plumb::cases
