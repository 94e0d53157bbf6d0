// SPDX-License-Identifier: Apache-2.0
//
// Tries faults on the steps that failed: the values that each fault leaves, and the findings that
// the detectors report.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "diagnosis/diagnosis.h"
#include "diagnosis/step_diagnosis.h"
#include "diagnosis/step_match.h"

namespace plumb::cases {

// A score from which no other fault needs to be tried.
inline constexpr double kCertain = 0.95;
// Two sets of findings count as the same if they have at least this share in common.
inline constexpr double kSameFindings = 0.75;

struct FaultTrial {
  const DecodeFault* fault = nullptr;
  DecodeSetup setup;
  Match first = {}, whole = {};         // match up to the first wrong call, and over all calls
  std::optional<double> findings = {};  // share of findings in common with the failure
  double later = 0;                     // sum of scores in steps after the failing one
  bool exact = true;                    // all values matched bit for bit so far
  std::string error = {};               // exception that ended its steps

  // Sum of the scores that distinguish faults which act alike at first.
  double sum() const;
  Explanation explanation() const;
};

class StepTrial {
 public:
  explicit StepTrial(const StepEvidence& evidence);

  bool by_values() const { return matcher_ && matcher_->any_wrong(); }
  bool threw() const;  // the steps ended with an exception
  std::int64_t step() const { return evidence_.findings.front().step; }
  bool is_affordable() const;
  // True if the steps fail in the same way without any fault, so that no fault explains them. False
  // without a run if values of the failing step are wrong.
  bool fails_without_any() const;

  // Tries the fault with several parameters and returns the best trial. nullopt if this setup
  // cannot have the fault.
  std::optional<FaultTrial> run(const DecodeFault& fault);
  void look_at_findings(FaultTrial& one) const;
  // Compares the failing setup and all rivals in a later step. False if there is no such step.
  bool look_at_later(std::int64_t later, std::span<FaultTrial> rivals) const;
  bool threw_the_same(const FaultTrial& one) const;

 private:
  double findings_in_common(const DecodeSetup& setup) const;
  bool is_possible(const FaultTrial& one) const;
  std::optional<FaultTrial> run(const DecodeFault& fault, const Plant& plant);
  void take_steps(FaultTrial& one) const;

  const StepEvidence& evidence_;
  const DecodeSetup clean_;
  std::optional<StepMatcher> matcher_;
  std::int64_t builds_ = 0, spent_ = 0;
};

}  // namespace plumb::cases
