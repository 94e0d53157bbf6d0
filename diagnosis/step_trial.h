// SPDX-License-Identifier: Apache-2.0
//
// Faults tried on the steps that failed: what each would have left, and what detectors would have
// said.
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

// Explains so much that no other need be tried.
inline constexpr double kCertain = 0.95;
// A share of findings in common from which they count as the same.
inline constexpr double kSameFindings = 0.75;

struct FaultTrial {
  const DecodeFault* fault = nullptr;
  DecodeSetup setup;
  Match first = {}, whole = {};         // up to the first wrong call; of all calls
  std::optional<double> findings = {};  // share in common with those of the failure
  double later = 0;                     // score in steps behind the failing one
  bool exact = true;                    // to the last bit so far
  std::string error = {};               // that ended its steps

  // Of what tells faults apart that act alike at first.
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
  // Whatever fault is planted then, it is not what fails.
  bool fails_without_any() const;

  // The best of the fault's parameters. Nothing for a fault that this setup cannot have.
  std::optional<FaultTrial> run(const DecodeFault& fault);
  void look_at_findings(FaultTrial& one) const;
  // What failed is here to take more steps, and so are all that explain it so far. False if there
  // is no such step.
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
