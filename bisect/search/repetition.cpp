// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/repetition.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>

#include "bisect/search/search.h"

namespace plumb::bisect {

namespace {

// With fewer failures the rate is so uncertain that every verdict needs more runs; more failures
// cost more runs than they save. 32 is close to the minimum of all runs in a search with ten
// verdicts, for every rate.
constexpr std::int64_t kFailuresWanted = 32;
// Gives up after so many runs without a failure: a failure rate of 1 in 5 would have shown by then,
// except with a probability of kWrongAnswer.
constexpr std::int64_t kTriesWithoutFailure = 64;

}  // namespace

double least_rate(std::int64_t failures, std::int64_t runs, double risk) {
  return boost::math::binomial_distribution<>::find_lower_bound_on_p(
      static_cast<double>(runs), static_cast<double>(failures), risk);
}

std::int64_t runs_until_good(double rate, std::int64_t verdicts, double risk) {
  if (rate >= 1) return 1;
  const double runs = std::log(risk / static_cast<double>(verdicts)) / std::log1p(-rate);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(runs)));
}

Repeater::Repeater(std::int64_t verdicts, std::int64_t known)
    : verdicts_(verdicts), known_(known) {}

bool Repeater::measured_enough(const Repeated& so_far) const {
  if (known_ > 0) return so_far.failures > 0 || so_far.runs == known_;
  if (so_far.failures == 0) return so_far.runs == kTriesWithoutFailure;
  return so_far.failures == kFailuresWanted;
}

void Repeater::take(const Repeated& measured) {
  failures_ = measured.failures;
  measured_runs_ = measured.runs;
  runs_ = std::max<std::int64_t>(1, known_);
  if (known_ > 0 || failures_ == 0) return;
  least_ = least_rate(failures_, measured_runs_, kWrongAnswer / 2);
  runs_ = runs_until_good(least_, verdicts_, kWrongAnswer / 2);
}

Repeated Repeater::measure(const Ask& ask) {
  Repeated measured;
  while (!measured_enough(measured)) {
    Answer answer = ask();
    ++measured.runs;
    measured.seconds += answer.seconds;
    const bool failed = answer.verdict == Verdict::bad;
    if (answer.verdict == Verdict::cannot_say && measured.failures > 0) {
      throw Undecided(
          fmt::format("the bad end sometimes fails and sometimes cannot say: {}", answer.reason));
    }
    measured.failures += failed;
    if (failed) signatures_.insert(answer.signature);
    // The answer is that of the first failure.
    if (measured.failures <= 1 && (failed || measured.failures == 0)) {
      measured.answer = std::move(answer);
    }
    if (measured.answer.verdict == Verdict::cannot_say) return measured;
  }
  take(measured);
  return measured;
}

void Repeater::restore(const Repeated& measured, const std::set<std::string>& signatures) {
  signatures_ = signatures;
  take(measured);
}

Repeated Repeater::verdict(const Ask& ask, bool any_failure) const {
  Repeated all;
  while (all.runs < runs_) {
    all.answer = ask();
    ++all.runs;
    all.seconds += all.answer.seconds;
    if (all.answer.verdict == Verdict::good) continue;
    const bool failed = all.answer.verdict == Verdict::bad;
    all.failures += failed;
    if (failed && !any_failure && !signatures_.contains(all.answer.signature)) {
      all.answer.verdict = Verdict::cannot_say;
      all.answer.reason = "fails in another way: " + all.answer.signature;
    }
    break;
  }
  return all;
}

std::string Repeater::text() const {
  const std::string good = runs_ == 1
                               ? "1 pass makes an answer good"
                               : fmt::format("{} passes in a row make an answer good", runs_);
  if (known_ > 0) return good + " (--repeat)";
  return fmt::format("failure rate at least {:.3g} % ({} of {} runs): {}", 100 * least_, failures_,
                     measured_runs_, good);
}

}  // namespace plumb::bisect
