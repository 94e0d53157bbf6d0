// SPDX-License-Identifier: Apache-2.0
//
// Compares the values of a step's calls with those of a hypothesis, bit for bit, because both ran
// on the same platform.
#pragma once

#include <cstddef>
#include <string>

#include "diagnosis/match.h"
#include "diagnosis/step_values.h"

namespace plumb::cases {

class StepMatcher {
 public:
  StepMatcher(const StepValues& observed, StepValues right);

  bool any_wrong() const { return first_wrong_ < right_.size(); }
  std::string first_wrong_op() const { return any_wrong() ? right_[first_wrong_].op : ""; }
  // Match over the calls up to and including the first one with a wrong value. In the calls before
  // that one, a true hypothesis has right values too.
  Match match_first(const StepValues& hypothesis) const;
  Match match_all(const StepValues& hypothesis) const;

 private:
  Match match_call(std::size_t call, const StepValues& hypothesis) const;
  Match match_up_to(std::size_t call, const StepValues& hypothesis) const;

  const StepValues& observed_;
  StepValues right_;
  std::size_t first_wrong_ = 0;  // index of the first wrong call; number of calls: none
};

}  // namespace plumb::cases
