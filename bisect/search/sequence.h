// SPDX-License-Identifier: Apache-2.0
//
// Finds where a sequence (of commits or environments) begins to fail: judges both ends, bisects
// between them, remembers every answer, and reports the evidence.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bisect/search/judging.h"
#include "bisect/search/search.h"

namespace plumb::bisect {

// The sequence to search. Its keys are also the keys of the journal.
class Sequence {
 public:
  virtual ~Sequence() = default;
  virtual std::string bad_end() const = 0;
  // The good end that the user named, and other elements that must be good.
  virtual std::vector<std::string> good_ends() const = 0;
  // Elements that may be the first bad one in addition to `bad`. Elements that split them most
  // evenly come first.
  virtual std::vector<std::string> halving_order(const std::string& bad,
                                                 const std::vector<std::string>& goods) const = 0;
  // Elements that may be the first bad one, including `bad`, in the order of the sequence.
  virtual std::vector<std::string> range(const std::string& bad,
                                         const std::vector<std::string>& goods) const = 0;
  virtual std::string text(const std::string& key) const = 0;  // name for people
  virtual Subject prepare(const std::string& key) = 0;
  virtual void note(const std::string& /*key*/, Verdict /*verdict*/) {}
};

struct SequenceResult {
  // In order. A single one, unless elements without a verdict stand before the first bad one.
  std::vector<std::string> candidates;
  std::map<std::string, std::string> unjudged;  // why a candidate has no verdict
  Answer failure;                               // of the last candidate, which is bad
  Question run;                                 // limited to the case and platform that failed
  std::int64_t length = 0;                      // number of candidates at the start
  std::int64_t builds = 0, failed_builds = 0;   // without the ends
  std::int64_t runs = 0;                        // runs of the case
  std::string rate;                             // failure rate and number of runs, as text
  std::vector<std::string> warnings;
};

class SequenceSearch {
 public:
  // All references must outlive this object. repeat: runs until an element counts as good; 0:
  // computed from the failure rate.
  SequenceSearch(Sequence& sequence, Question run, std::int64_t repeat, double timeout,
                 Journal& journal, Progress& progress);
  // Throws Undecided, Interrupted.
  SequenceResult run();
  // Judges every element in order, instead of searching.
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
