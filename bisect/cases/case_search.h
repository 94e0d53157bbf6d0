// SPDX-License-Identifier: Apache-2.0
//
// plumb bisect case: the smallest case that fails as the one that was asked about.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bisect/cases/case_subject.h"
#include "bisect/search/journal.h"
#include "bisect/search/progress.h"

namespace plumb::bisect {

struct CaseQuestion {
  Question run;             // one case, as --case spells it
  std::int64_t repeat = 0;  // runs until a case counts as passing; 0: as the rate wants
  double timeout = 300;     // seconds of a run
  double seconds = 0;       // of the search; 0: no limit
  int jobs = 1;
};
nlohmann::json to_json(const CaseQuestion& question);

struct CaseSearchResult {
  Question first, smallest;
  Answer failure;                               // of the smallest, with its diagnosis
  std::optional<ServingSize> first_size, size;  // of a schedule; else ""
  Shrunk shrunk;
  // The passing neighbour, if there is one.
  std::optional<Question> passing;
  std::int64_t probes = 0;
  double seconds = 0;
  std::string rate;  // how often it fails, where that was measured; else ""
};

class CaseSearch {
 public:
  // which: with its settings; all: the cases of its op, without. Throws Undecided from run().
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
  std::int64_t failures_ = 0, measured_runs_ = 0;  // of the case as it was
  std::int64_t runs_ = 1;                          // that have to pass before a candidate does
  Answer first_;
};

}  // namespace plumb::bisect
