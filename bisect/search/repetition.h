// SPDX-License-Identifier: Apache-2.0
//
// Verdicts about failures that do not show in every run. How often it fails is measured where it is
// known to fail; from that follows how often it has to pass before it counts as good.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "bisect/search/oracle.h"

namespace plumb::bisect {

// That the whole search gives a wrong answer. One half goes to the estimate of the rate, the other
// to the verdicts.
inline constexpr double kWrongAnswer = 1e-6;

// The rate below which so many failures in so many runs would have a probability less than `risk`
// (Clopper and Pearson). Holds too if one stopped at the failure whose number was fixed before.
double least_rate(std::int64_t failures, std::int64_t runs, double risk);

// Runs that have to pass before something counts as good, if what is bad fails with at least this
// rate in each run, and `verdicts` of them together may be wrong with probability `risk`.
std::int64_t runs_until_good(double least_rate, std::int64_t verdicts, double risk);

// An answer from several runs.
struct Repeated {
  Answer answer;
  std::int64_t runs = 0, failures = 0;
  double seconds = 0;  // of all runs
};

class Repeater {
 public:
  using Ask = std::function<Answer()>;

  // verdicts: how many "good" the search may give at most. known: the number of runs, if the user
  // knows it; 0: it follows from the rate.
  Repeater(std::int64_t verdicts, std::int64_t known);

  // Of the bad end: runs until it has failed often enough for the rate to be known. Good if it
  // never failed. Throws Undecided if it fails sometimes and cannot say at other times.
  Repeated measure(const Ask& ask);
  // What an earlier measure() came to.
  void restore(const Repeated& measured, const std::set<std::string>& signatures);

  // Of anything: bad at the first failure that is the same one, or any if that is wanted, good
  // after enough runs. A failure of another kind cannot say.
  Repeated verdict(const Ask& ask, bool any_failure = false) const;

  std::int64_t runs() const { return runs_; }
  double least() const { return least_; }
  const std::set<std::string>& signatures() const { return signatures_; }
  std::string text() const;  // the rate and what follows, in one line

 private:
  bool measured_enough(const Repeated& so_far) const;
  void take(const Repeated& measured);

  std::int64_t verdicts_, known_, runs_ = 1;
  std::int64_t failures_ = 0, measured_runs_ = 0;
  double least_ = 0;
  std::set<std::string> signatures_;
};

}  // namespace plumb::bisect
