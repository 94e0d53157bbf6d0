// SPDX-License-Identifier: Apache-2.0
//
// Answers about one thing after the other, as often as the rate of the failure wants them, each
// remembered in the journal and told as it comes.
#pragma once

#include <functional>
#include <string>

#include "bisect/search/journal.h"
#include "bisect/search/subject.h"

namespace plumb::bisect {

class Judging {
 public:
  // Journal and progress outlive it. most_goods: how many good answers may come; repeat: runs until
  // something counts as good, 0: as the rate wants it.
  Judging(Question run, double timeout, std::int64_t most_goods, std::int64_t repeat,
          Journal& journal, Progress& progress);

  struct Asked {
    std::string key;   // in the journal
    std::string text;  // for people
    std::string why;
    int left = 0;  // steps, with this one
    std::function<Subject()> prepare;
  };
  // Of what is known to fail: how it does, and how often.
  Judged measure(const Asked& asked);
  Judged ask(const Asked& asked);
  // A decision, for the journal and for people.
  void decide(const std::string& text);

  // The question is about the case and platform that failed, where it was about several.
  void narrow(const Answer& failure);
  // Counts every failure as bad, not only the measured one.
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
