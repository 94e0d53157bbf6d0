// SPDX-License-Identifier: Apache-2.0
//
// Verdicts on failures that do not show in every run. The failure rate is measured on a subject
// that is known to fail. From the rate follows how many passing runs make another subject good.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "bisect/search/oracle.h"

namespace plumb::bisect {

// Probability that the whole search gives a wrong answer. Half of it is spent on the estimate of
// the rate, half on the verdicts.
inline constexpr double kWrongAnswer = 1e-6;

// Lower confidence limit of the failure rate: below it, so many failures in so many runs would have
// a probability less than `risk` (Clopper and Pearson). Also valid if sampling stopped at a fixed
// number of failures.
double least_rate(std::int64_t failures, std::int64_t runs, double risk);

// Number of passing runs until a subject counts as good, if a bad one fails with at least this rate
// per run. With probability `risk` at most, one of `verdicts` such verdicts is wrong.
std::int64_t runs_until_good(double least_rate, std::int64_t verdicts, double risk);

// An answer from several runs.
struct Repeated {
  Answer answer;
  std::int64_t runs = 0, failures = 0;
  double seconds = 0;  // sum over all runs
};

class Repeater {
 public:
  using Ask = std::function<Answer()>;

  // verdicts: largest number of good verdicts in the search. known: number of runs if the user sets
  // it; 0: computed from the rate.
  Repeater(std::int64_t verdicts, std::int64_t known);

  // Runs the bad end until it has failed often enough to know the rate. Returns good if it never
  // failed. Throws Undecided if it fails in some runs and cannot say in others.
  Repeated measure(const Ask& ask);
  // Restores the result of an earlier measure().
  void restore(const Repeated& measured, const std::set<std::string>& signatures);

  // Judges a subject: bad at the first failure with a measured signature (any failure, if
  // `any_failure`), good after enough passing runs. A failure with another signature is cannot_say.
  Repeated verdict(const Ask& ask, bool any_failure = false) const;

  std::int64_t runs() const { return runs_; }
  double least() const { return least_; }
  const std::set<std::string>& signatures() const { return signatures_; }
  std::string text() const;  // the rate and the resulting number of runs, in one line

 private:
  bool measured_enough(const Repeated& so_far) const;
  void take(const Repeated& measured);

  std::int64_t verdicts_, known_, runs_ = 1;
  std::int64_t failures_ = 0, measured_runs_ = 0;
  double least_ = 0;
  std::set<std::string> signatures_;
};

}  // namespace plumb::bisect
