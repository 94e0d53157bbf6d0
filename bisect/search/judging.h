// SPDX-License-Identifier: Apache-2.0
//
// Judges one subject after another, each as often as the failure rate requires. Remembers every
// answer in the journal and reports it.
#pragma once

#include <functional>
#include <string>

#include "bisect/search/journal.h"
#include "bisect/search/subject.h"

namespace plumb::bisect {

class Judging {
 public:
  // Journal and progress must outlive this object. most_goods: upper limit of good answers. repeat:
  // runs until a subject counts as good; 0: computed from the failure rate.
  Judging(Question run, double timeout, std::int64_t most_goods, std::int64_t repeat,
          Journal& journal, Progress& progress);

  struct Asked {
    std::string key;   // key in the journal
    std::string text;  // name for people
    std::string why;
    int left = 0;  // remaining steps, including this one
    std::function<Subject()> prepare;
  };
  // Measures how, and how often, a subject fails that is known to fail.
  Judged measure(const Asked& asked);
  Judged ask(const Asked& asked);
  // Records a decision in the journal and prints it.
  void decide(const std::string& text);

  // If the question was about several cases or platforms, limits it to the one that failed.
  void narrow(const Answer& failure);
  // Counts every failure as bad, not only failures with a signature that measure() has seen.
  void accept_any_failure() { any_failure_ = true; }
  const Question& run() const { return run_; }
  std::string rate() const { return repeater_.text(); }
  std::int64_t runs() const { return runs_; }

 private:
  Judged answer(const Asked& asked, bool measured);
  Judged tell(const Asked& asked, bool measured);

  Question run_;
  double timeout_;
  Journal& journal_;
  Progress& progress_;
  Repeater repeater_;
  bool any_failure_ = false;
  std::int64_t runs_ = 0;
};

}  // namespace plumb::bisect
