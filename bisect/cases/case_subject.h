// SPDX-License-Identifier: Apache-2.0
//
// A case of plumb run as something that can be made smaller: the parameters of its row, its
// scenario, the point at which it fails, and, for a decode step, its schedule.
#pragma once

#include <cstdint>
#include <map>
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
  // which: the case with the changes of --set. run: the original question, whose other settings all
  // candidates keep.
  CaseSubject(cases::AnyCase which, const std::vector<cases::AnyCase>& all, Question run);

  // Makes the parts of a point parameters of all candidates. They start at this point.
  void take_point(const std::string& spec);

  void guess(Candidate candidate) { subject_.guess = std::move(candidate); }

  const Shrinkable& subject() const { return subject_; }
  const Candidate& start() const { return start_; }
  bool is_possible(const Candidate& candidate) const;
  Question question(const Candidate& candidate) const;
  // Requests and steps of the schedule; nullopt for a case that is not a decode step.
  std::optional<ServingSize> size(const Candidate& candidate) const;

 private:
  cases::AnyCase case_of(const Candidate& candidate) const;  // throws cases::BadRow
  cases::AnyCase said(const cases::AnyCase& which) const;
  std::string point_of(const Candidate& candidate, const cases::Case& which) const;
  void describe_serving();
  bool is_degenerate(const cases::Problem& problem) const;
  void add_recorded_rows(const cases::Case& which);
  void add_strides(const cases::AnyCase& which);
  void add_reals(const cases::AnyCase& which, const std::vector<cases::AnyCase>& all);
  void add_row(const cases::AnyCase& which, const std::vector<cases::AnyCase>& all);
  void add_scenarios(const cases::AnyCase& which, const std::vector<cases::AnyCase>& all);
  void add(Knob knob, std::string value);

  std::vector<cases::AnyCase> scenarios_;  // cases of this row as the files have them
  Question run_;
  Shrinkable subject_;
  Candidate start_;
  bool has_point_ = false;
  bool has_rows_ = false;  // the original launch has work: so has every candidate
  // By name, for the outputs of an op that have elements at the start.
  std::map<std::string, std::int64_t> columns_to_keep_;
};

}  // namespace plumb::bisect
