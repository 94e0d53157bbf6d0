// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/step_diagnosis.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "cases/tensors/sort_by.h"
#include "diagnosis/step_trial.h"

namespace plumb::cases {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;  // limit for the values of one step

// If the wrong values say little (Match::is_weak), a fault explains the failure only if at least
// this share of the detectors' findings is the same with the fault.
constexpr double kSimilarFindings = 0.5;

bool has(const std::vector<Finding>& findings, Detector detector) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.detector == detector; });
}

class StepDiagnosis {
 public:
  StepDiagnosis(const StepEvidence& evidence, const std::vector<DecodeFault>& library)
      : evidence_(evidence), library_(library), trial_(evidence) {}

  Diagnosis run() {
    if (trial_.fails_without_any()) {
      diagnosis_.not_tried = "the steps fail in the same way without a planted fault";
      return std::move(diagnosis_);
    }
    diagnosis_.known = std::ssize(library_);
    for (const auto& group : groups()) {
      for (const DecodeFault* fault : group) try_fault(*fault);
      if (is_certain()) break;
    }
    if (trial_.threw()) {
      name_by_error();
    } else if (trial_.by_values()) {
      name_by_values();
    } else {
      name_by_findings();
    }
    return std::move(diagnosis_);
  }

 private:
  using Faults = std::vector<const DecodeFault*>;

  // Groups of faults to try, likely ones first. A fault is left out if its own detector reported
  // nothing, unless the steps ended early with an exception.
  std::vector<Faults> groups() const {
    std::vector<Faults> all(2);
    for (const DecodeFault& fault : library_) {
      const bool blamed = fault.broken == evidence_.findings.front().op;
      const bool seen = has(evidence_.findings, fault.seen_by);
      const bool likely = trial_.threw() ? seen : blamed;
      if (seen || trial_.threw()) all[likely ? 0 : 1].push_back(&fault);
    }
    return all;
  }

  void try_fault(const DecodeFault& fault) {
    if (!trial_.is_affordable()) {
      ++diagnosis_.left_out;
    } else if (auto candidate = trial_.run(fault)) {
      candidates_.push_back(std::move(*candidate));
    }
  }

  bool is_certain() {
    return std::any_of(candidates_.begin(), candidates_.end(), [&](FaultTrial& one) {
      if (trial_.threw()) return trial_.threw_the_same(one);
      if (one.first.score() < kCertain) return false;
      if (!one.first.is_weak()) return true;
      trial_.look_at_findings(one);
      return *one.findings >= kSameFindings && says_enough(one);
    });
  }

  // True if the evidence for a fault suffices. If the wrong values say little, the findings must
  // agree. Values that are all equal, such as NaN everywhere, are no evidence for a fault that only
  // the reference detector sees.
  static bool says_enough(const FaultTrial& one) {
    if (!one.first.is_weak()) return true;
    const bool empty = one.first.is_alike() && one.fault->seen_by == Detector::reference;
    return !empty && one.findings >= kSimilarFindings;
  }

  // Sorts the candidates and returns those with at least kLeastScore whose score is within
  // kScoreMargin of the best.
  std::span<FaultTrial> rivals() {
    sort_by(candidates_, [](const FaultTrial& one) { return one.first.score(); }, std::greater<>());
    const auto end =
        std::find_if(candidates_.begin(), candidates_.end(), [&](const FaultTrial& one) {
          return one.first.score() < kLeastScore ||
                 one.first.score() < candidates_.front().first.score() - kScoreMargin;
        });
    return {candidates_.begin(), end};
  }

  // Sorts the rivals (candidates that are about equally good) by FaultTrial::sum. True if the best
  // two differ by at most kScoreMargin.
  static bool are_alike(std::span<FaultTrial> rivals) {
    sort_by(rivals, [](const FaultTrial& one) { return one.sum(); }, std::greater<>());
    return rivals.size() > 1 && rivals[0].sum() - rivals[1].sum() <= kScoreMargin;
  }

  void name_by_values() {
    const std::span<FaultTrial> best = rivals();
    const bool weak = !best.empty() && best.front().first.is_weak();
    if (best.size() > 1 || weak) {
      for (FaultTrial& one : best) trial_.look_at_findings(one);
    }
    std::int64_t later = trial_.step() + 1;
    while (are_alike(best) && trial_.look_at_later(later, best)) ++later;
    name(best.size(), [&](const FaultTrial& one) {
      return says_enough(one) && one.sum() >= best.front().sum() - kScoreMargin;
    });
  }

  void name_by_error() {
    const auto same = [&](const FaultTrial& one) { return trial_.threw_the_same(one); };
    sort_by(candidates_, same, std::greater<>());
    name(candidates_.size(), same);
  }

  void name_by_findings() {
    for (FaultTrial& one : candidates_) {
      if (one.first.invented == 0 && one.error.empty()) trial_.look_at_findings(one);
    }
    sort_by(
        candidates_, [](const FaultTrial& one) { return one.findings.value_or(0); },
        std::greater<>());
    name(candidates_.size(), [&](const FaultTrial& one) {
      return one.findings >= kSameFindings &&
             *one.findings >= *candidates_.front().findings - kScoreMargin;
    });
  }

  // Names candidates in order while they satisfy is_good, at most `rivals`. The first that is not
  // named becomes the next best if it explains any value.
  template <class IsGood>
  void name(std::size_t rivals, const IsGood& is_good) {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (i < rivals && is_good(candidates_[i])) {
        diagnosis_.named.push_back(candidates_[i].explanation());
        continue;
      }
      if (candidates_[i].first.explained > 0) diagnosis_.next = candidates_[i].explanation();
      break;
    }
  }

  const StepEvidence& evidence_;
  const std::vector<DecodeFault>& library_;
  StepTrial trial_;
  std::vector<FaultTrial> candidates_;
  Diagnosis diagnosis_;
};

}  // namespace

DiagnosedWatch watch_and_diagnose(const DecodeSetup& setup, const ScheduleShape& shape,
                                  const StepHook& hook) {
  WatchedFailure failure = watch_for_evidence(setup, shape, hook);
  return {std::move(failure.result), diagnose_step(failure.evidence)};
}

WatchedFailure watch_for_evidence(const DecodeSetup& setup, const ScheduleShape& shape,
                                  const StepHook& hook) {
  WatchedFailure failure{{}, {setup, shape, {}, {}, ""}};
  failure.result = watch(setup, shape, [&](const WatchedStep& step) {
    if (hook) hook(step);
    const auto& findings = step.findings.all();
    if (findings.empty() || has(findings, Detector::error)) return;
    if (bytes_of(step.twin, step.parts) > kMostBytes) {
      failure.evidence.left_out = "the step is too large";
      return;
    }
    failure.evidence.values = values_of(step.twin, step.parts);
  });
  failure.evidence.findings = failure.result.findings;
  return failure;
}

Diagnosis diagnose_step(const StepEvidence& evidence, const std::vector<DecodeFault>& library) {
  Diagnosis diagnosis;
  diagnosis.not_tried = evidence.left_out;
  if (!diagnosis.not_tried.empty() || evidence.findings.empty()) return diagnosis;
  try {
    return StepDiagnosis(evidence, library).run();
  } catch (const std::exception& error) {
    diagnosis.not_tried = error.what();
    return diagnosis;
  }
}

}  // namespace plumb::cases
