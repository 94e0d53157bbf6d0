// SPDX-License-Identifier: Apache-2.0
//
// Where a sequence of things begins to fail, commits or environments: checks both ends, halves what
// is between them, remembers every answer, and says what the answer rests on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bisect/search/judging.h"
#include "bisect/search/search.h"

namespace plumb::bisect {

// What is searched. Keys are those of the journal.
class Sequence {
 public:
  virtual ~Sequence() = default;
  virtual std::string bad_end() const = 0;
  // The good end that was asked for, and what else has to be good.
  virtual std::vector<std::string> good_ends() const = 0;
  // What may have been the first bad one beside `bad`; those first that halve them best.
  virtual std::vector<std::string> halving_order(const std::string& bad,
                                                 const std::vector<std::string>& goods) const = 0;
  // The same with `bad`, in their order.
  virtual std::vector<std::string> range(const std::string& bad,
                                         const std::vector<std::string>& goods) const = 0;
  virtual std::string text(const std::string& key) const = 0;  // for people
  virtual Subject prepare(const std::string& key) = 0;
  virtual void note(const std::string& /*key*/, Verdict /*verdict*/) {}
};

struct SequenceResult {
  // In their order; one, unless some that cannot say stand before the first bad one.
  std::vector<std::string> candidates;
  std::map<std::string, std::string> unjudged;  // of these: why
  Answer failure;                               // of the last of them, which is bad
  Question run;                                 // with the case and platform that failed
  std::int64_t length = 0;                      // candidates at first
  std::int64_t builds = 0, failed_builds = 0;   // beside the ends
  std::int64_t runs = 0;                        // of the case
  std::string rate;                             // how often it failed, and what follows
  std::vector<std::string> warnings;
};

class SequenceSearch {
 public:
  // All of them outlive it. repeat: runs until something counts as good, 0: as the rate wants it.
  SequenceSearch(Sequence& sequence, Question run, std::int64_t repeat, double timeout,
                 Journal& journal, Progress& progress);
  // Throws Undecided, Interrupted.
  SequenceResult run();
  // Instead: every one of them, in their order, whatever their verdicts.
  std::vector<Judged> judge_all(const std::vector<std::string>& keys);

 private:
  Judged judge(const std::string& key, const std::string& why, std::size_t candidates);
  void count(const std::string& key, const Judged& judged);
  void judge_bad_end();
  std::vector<std::string> judge_good_ends();
  void check_path(const std::string& key, const std::string& what);
  void finish(const FirstBad& found);

  Sequence& sequence_;
  Judging judging_;
  std::size_t length_;
  std::map<std::string, Judged> judged_;
  SequenceResult result_;
};

}  // namespace plumb::bisect
