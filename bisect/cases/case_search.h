// SPDX-License-Identifier: Apache-2.0
//
// plumb bisect case: finds the smallest case that fails in the same way as a given case.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bisect/cases/case_subject.h"
#include "bisect/search/journal.h"
#include "bisect/search/progress.h"

namespace plumb::bisect {

struct CaseQuestion {
  Question run;  // one case, named as in --case
  // Runs without failure until a case counts as passing; 0: computed from the measured failure
  // rate.
  std::int64_t repeat = 0;
  double timeout = 300;  // seconds per run
  double seconds = 0;    // seconds for making the case smaller; 0: no limit
  int jobs = 1;
};
nlohmann::json to_json(const CaseQuestion& question);

struct CaseSearchResult {
  Question first, smallest;
  Answer failure;                               // of the smallest case, with its diagnosis
  std::optional<ServingSize> first_size, size;  // set for decode steps only
  Shrunk shrunk;
  // A passing case that differs from the smallest one in one parameter, if there is one.
  std::optional<Question> passing;
  std::int64_t probes = 0;
  double seconds = 0;
  std::string rate;  // how often the case failed, as text; "" if every run gives the same
};

class CaseSearch {
 public:
  // which: the case with the changes of --set. all: the cases of its op as the files have them.
  // run() throws Undecided.
  CaseSearch(CaseQuestion question, const cases::AnyCase& which,
             const std::vector<cases::AnyCase>& all, Journal& journal, Progress& progress);
  CaseSearchResult run();

 private:
  bool is_repeatable() const;
  Answer first_answer();
  Answer measure();
  void settle_runs();
  std::string rate_text() const;
  Answer diagnosed(const Question& smallest) const;
  void name_point();
  void guess_steps();
  Said said(const Candidate& candidate) const;
  Answer answer(const Question& question) const;
  void heard(const Candidate& candidate, const Said& said, const std::string& why);
  void took(const Candidate& before, const Candidate& after, const std::string& why);
  Prober make_prober();
  std::string key(const Candidate& candidate) const;

  CaseQuestion question_;
  const cases::AnyCase& which_;
  const std::vector<cases::AnyCase>& all_;
  Journal& journal_;
  Progress& progress_;
  std::unique_ptr<CaseSubject> subject_;
  std::int64_t failures_ = 0, measured_runs_ = 0;  // of the original case
  // Runs that must pass until a candidate (a smaller case) counts as passing.
  std::int64_t runs_ = 1;
  Answer first_;
};

}  // namespace plumb::bisect
