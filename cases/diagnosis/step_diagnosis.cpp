// SPDX-License-Identifier: Apache-2.0
#include "cases/diagnosis/step_diagnosis.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "cases/diagnosis/op_run.h"
#include "cases/diagnosis/step_match.h"
#include "cases/diagnosis/step_run.h"

namespace plumb::cases {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;  // of one step's values
// A hypothesis costs the steps up to the failing one; so many are affordable.
constexpr std::int64_t kMostSteps = 1000, kStepsOfCapture = 4;

// Explains enough; as much as another; so much that no other need be tried.
constexpr double kExplains = 0.6, kMargin = 0.1, kCertain = 0.95;
constexpr std::int64_t kMostLater = 3;  // steps
// Shares of findings in common.
constexpr double kSameFindings = 0.75, kSimilarFindings = 0.5;

bool has(const std::vector<Finding>& findings, Detector detector) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.detector == detector; });
}

// Of a setup without faults. What a fault changes beside plumb's own code is where it shows best,
// and not part of it.
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

// Addresses, sizes and steps differ from run to run.
std::string without_numbers(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
  return text;
}

class StepDiagnosis {
 public:
  StepDiagnosis(const StepEvidence& evidence, const std::vector<DecodeFault>& library)
      : evidence_(evidence), library_(library), clean_(as_it_should_be(evidence.setup)) {}

  Diagnosis run() {
    diagnosis_.known = std::ssize(library_);
    if (!evidence_.values.empty()) {
      StepRun right = run_to_step(clean_, evidence_.shape, step());
      builds_ = right.builds;
      matcher_.emplace(evidence_.values, std::move(right.values), evidence_.closeness,
                       evidence_.findings.front().call);
    }
    const bool by_values = matcher_ && matcher_->any_wrong();
    for (const auto& group : groups()) {
      for (const DecodeFault* fault : group) try_fault(*fault, by_values);
      if (is_certain()) break;
    }
    if (threw()) {
      name_by_error();
    } else if (by_values) {
      name_by_values();
    } else {
      name_by_findings();
    }
    return std::move(diagnosis_);
  }

 private:
  struct Candidate {
    const DecodeFault* fault = nullptr;
    DecodeSetup setup;
    Match first, whole;  // up to the first wrong call; of all calls
    std::optional<double> findings = {};
    double later = 0;        // score in steps behind the failing one
    bool exact = true;       // to the last bit so far
    std::string error = {};  // that ended its steps

    // Of what tells faults apart that act alike at first.
    double sum() const {
      return first.score() + whole.score() + findings.value_or(0) + later + (exact ? 1 : 0);
    }
    Explanation explanation() const { return {fault->name, fault->stands_for, first, findings}; }
  };
  using Faults = std::vector<const DecodeFault*>;

  // The steps ended with an exception.
  bool threw() const { return has(evidence_.findings, Detector::error); }
  std::int64_t step() const { return evidence_.findings.front().step; }

  // The likely ones first. A fault whose own detector is silent is not there, unless the steps
  // ended before it could speak.
  std::vector<Faults> groups() const {
    std::vector<Faults> all(2);
    for (const DecodeFault& fault : library_) {
      const bool blamed = fault.broken == evidence_.findings.front().op;
      const bool seen = has(evidence_.findings, fault.seen_by);
      if (seen || threw()) all[(threw() ? seen : blamed) ? 0 : 1].push_back(&fault);
    }
    return all;
  }

  // A kernel that is wrong shows in a call of its own first, and V3.2's metadata in V3.2.
  bool is_possible(const DecodeFault& fault, const DecodeSetup& with) const {
    return !with.implementation || fault.broken == evidence_.findings.front().op ||
           (matcher_ && fault.broken == matcher_->first_wrong_op()) || threw();
  }

  void try_fault(const DecodeFault& fault, bool by_values) {
    if (spent_ > kMostSteps) {
      ++diagnosis_.left_out;
      return;
    }
    std::vector<Plant> plants{fault.inject};
    if (fault.sweep && by_values) {
      const std::vector<Plant> more = fault.sweep(builds_);
      plants.insert(plants.end(), more.begin(), more.end());
    }
    std::optional<Candidate> best;
    for (const Plant& plant : plants) {
      std::optional<Candidate> one = candidate(fault, plant);
      if (!one) continue;
      if (!best || one->first.score() > best->first.score()) best = std::move(one);
      if (best->first.score() >= kCertain) break;
    }
    if (best) candidates_.push_back(std::move(*best));
  }

  // Nothing for a fault that this setup cannot have.
  std::optional<Candidate> candidate(const DecodeFault& fault, const Plant& plant) {
    std::optional<Candidate> one;
    try {
      one = Candidate{&fault, with_fault(clean_, plant), {}, {}};
    } catch (const NotOnThisPlatform&) {
      return std::nullopt;
    }
    if (!is_possible(fault, one->setup)) return std::nullopt;
    if (matcher_ || threw()) run_steps(*one);
    return one;
  }

  void run_steps(Candidate& one) {
    spent_ += step() + kStepsOfCapture;
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

  bool is_certain() {
    return std::any_of(candidates_.begin(), candidates_.end(), [&](Candidate& one) {
      if (threw()) return threw_the_same(one);
      if (one.first.score() < kCertain) return false;
      if (one.first.is_weak()) look_at_findings(one);
      return !one.first.is_weak() || *one.findings >= kSameFindings;
    });
  }

  // What the detectors would have found.
  void look_at_findings(Candidate& one) {
    if (one.findings) return;
    ScheduleShape shape = evidence_.shape;
    const WatchResult result = watch(one.setup, shape);
    one.findings = 0;
    if (result.clean() || result.findings.front().step != step()) return;
    const Signature got = signature_of(evidence_.findings), would = signature_of(result.findings);
    const auto common = std::count_if(got.begin(), got.end(),
                                      [&](const auto& entry) { return would.contains(entry); });
    one.findings = static_cast<double>(common) /
                   static_cast<double>(std::ssize(got) + std::ssize(would) - common);
  }

  static bool by_sum(const Candidate& a, const Candidate& b) { return a.sum() > b.sum(); }

  // Do the best two of them do the same?
  bool are_alike(std::size_t rivals) {
    if (rivals < 2) return false;
    std::stable_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(rivals),
                     by_sum);
    return candidates_[0].sum() - candidates_[1].sum() <= kMargin;
  }

  bool is_affordable(std::int64_t later) const {
    return evidence_.closeness == Closeness::bits && later < evidence_.shape.steps &&
           later <= step() + kMostLater;
  }

  // What failed is here to take one more step, and so are all that explain it so far.
  void look_at_later(std::int64_t later, std::size_t rivals) {
    try {
      const StepRun observed = run_to_step(evidence_.setup, evidence_.shape, later);
      StepRun right = run_to_step(clean_, evidence_.shape, later);
      const StepMatcher matcher(observed.values, std::move(right.values), evidence_.closeness);
      for (std::size_t i = 0; i < rivals; ++i) {
        Candidate& one = candidates_[i];
        const StepRun run = run_to_step(one.setup, evidence_.shape, later);
        const Match match = matcher.match_all(run.values);
        one.later += match.score();
        one.exact = one.exact && match.is_exact();
      }
    } catch (const std::exception&) {
      // Steps behind a failing one need not be possible.
    }
  }

  void name_by_values() {
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) {
      return a.first.score() > b.first.score();
    });
    std::size_t rivals = 0;
    while (rivals < candidates_.size() && candidates_[rivals].first.score() >= kExplains &&
           candidates_[rivals].first.score() >= candidates_.front().first.score() - kMargin) {
      ++rivals;
    }
    const bool weak = rivals > 0 && candidates_.front().first.is_weak();
    if (rivals > 1 || weak) {
      for (std::size_t i = 0; i < rivals; ++i) look_at_findings(candidates_[i]);
    }
    for (std::int64_t later = step() + 1; are_alike(rivals) && is_affordable(later); ++later) {
      look_at_later(later, rivals);
    }
    std::stable_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(rivals),
                     by_sum);
    name(rivals, [&](const Candidate& one) {
      return (!weak || one.findings >= kSimilarFindings) &&
             one.sum() >= candidates_.front().sum() - kMargin;
    });
  }

  bool threw_the_same(const Candidate& one) const {
    const auto& findings = evidence_.findings;
    return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
      return finding.detector == Detector::error &&
             without_numbers(finding.text) == without_numbers(one.error);
    });
  }

  void name_by_error() {
    const auto same = [&](const Candidate& one) { return threw_the_same(one); };
    std::stable_partition(candidates_.begin(), candidates_.end(), same);
    name(candidates_.size(), same);
  }

  void name_by_findings() {
    for (Candidate& one : candidates_) {
      if (one.first.invented == 0 && one.error.empty()) look_at_findings(one);
    }
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) {
      return a.findings.value_or(0) > b.findings.value_or(0);
    });
    name(candidates_.size(), [&](const Candidate& one) {
      return one.findings >= kSameFindings &&
             *one.findings >= *candidates_.front().findings - kMargin;
    });
  }

  // The first of the rivals that are good enough; the next best is whoever follows.
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
  const DecodeSetup clean_;
  std::optional<StepMatcher> matcher_;
  std::vector<Candidate> candidates_;
  std::int64_t builds_ = 0, spent_ = 0;
  Diagnosis diagnosis_;
};

}  // namespace

DiagnosedWatch watch_and_diagnose(const DecodeSetup& setup, const ScheduleShape& shape) {
  WatchedFailure failure = watch_for_evidence(setup, shape);
  return {std::move(failure.result), diagnose(failure.evidence)};
}

WatchedFailure watch_for_evidence(const DecodeSetup& setup, const ScheduleShape& shape) {
  WatchedFailure failure{{}, {setup, shape, {}, {}, ""}};
  failure.result = watch(setup, shape, [&](const WatchedStep& step) {
    const auto& findings = step.findings.all();
    if (findings.empty() || has(findings, Detector::error)) return;
    if (bytes_of(step.twin, step.parts) > kMostBytes) {
      failure.evidence.left_out = "the step is too large for the simulator";
      return;
    }
    failure.evidence.values = values_of(step.twin, step.parts);
  });
  failure.evidence.findings = failure.result.findings;
  failure.evidence.closeness = closeness_to_simulator(setup.platform);
  return failure;
}

Diagnosis diagnose(const StepEvidence& evidence, const std::vector<DecodeFault>& library) {
  Diagnosis diagnosis;
  diagnosis.not_tried = evidence.left_out;
  if (!diagnosis.not_tried.empty() || evidence.findings.empty()) return diagnosis;
  return StepDiagnosis(evidence, library).run();
}

}  // namespace plumb::cases
