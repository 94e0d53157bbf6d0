// SPDX-License-Identifier: Apache-2.0
//
// A case of plumb run as something that can be made smaller: its row's parameters, how it is
// driven, the point at which it fails; of a decode step the schedule too.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bisect/cases/serving.h"
#include "bisect/cases/shrink.h"
#include "bisect/search/oracle.h"
#include "cases/drivers/run.h"
#include "decode/schedule/any_case.h"

namespace plumb::bisect {

class CaseSubject {
 public:
  // which: with what --set has changed. run: what is asked but for what the candidate says.
  CaseSubject(cases::AnyCase which, const std::vector<cases::AnyCase>& all, Question run);

  // From now on candidates say at which point they run: this one at first.
  void take_point(const std::string& spec);

  void guess(Candidate candidate) { subject_.guess = std::move(candidate); }

  const Shrinkable& subject() const { return subject_; }
  const Candidate& start() const { return start_; }
  bool is_possible(const Candidate& candidate) const;
  Question question(const Candidate& candidate) const;
  // Of a decode step's schedule.
  std::optional<ServingSize> size(const Candidate& candidate) const;

 private:
  cases::AnyCase case_of(const Candidate& candidate) const;  // throws cases::BadRow
  cases::AnyCase said(const cases::AnyCase& which) const;
  std::string point_of(const Candidate& candidate, const cases::Case& which) const;
  void describe_serving();
  void add_recorded_rows(const cases::Case& which);
  void add_row(const cases::AnyCase& which, const std::vector<cases::AnyCase>& all);
  void add_scenarios(const cases::AnyCase& which, const std::vector<cases::AnyCase>& all);
  void add(Knob knob, std::string value);

  std::vector<cases::AnyCase> scenarios_;  // of this row, as the files have it
  Question run_;
  Shrinkable subject_;
  Candidate start_;
  bool has_point_ = false;
};

}  // namespace plumb::bisect
