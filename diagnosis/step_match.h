// SPDX-License-Identifier: Apache-2.0
//
// What the calls of a step did against what they would have done, bit for bit: both ran on the same
// platform.
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
  // Of the first call with a wrong value, and of those before it, in which a true hypothesis is
  // right too.
  Match match_first(const StepValues& hypothesis) const;
  Match match_all(const StepValues& hypothesis) const;

 private:
  Match match_call(std::size_t call, const StepValues& hypothesis) const;
  Match match_up_to(std::size_t call, const StepValues& hypothesis) const;

  const StepValues& observed_;
  StepValues right_;
  std::size_t first_wrong_ = 0;  // behind the last: none
};

}  // namespace plumb::cases
