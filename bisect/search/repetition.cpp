// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/repetition.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>

#include "bisect/search/search.h"

namespace plumb::bisect {

namespace {

// Fewer leave the rate so uncertain that every verdict takes more runs, more cost more than they
// save: near the least sum of runs in a search of ten verdicts, at any rate.
constexpr std::int64_t kFailuresWanted = 32;
// Without any failure: what fails 1 time in 5 would have been seen, but for kWrongAnswer.
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
      throw Undecided(fmt::format("the bad end fails and cannot say by turns: {}", answer.reason));
    }
    measured.failures += failed;
    if (failed) signatures_.insert(answer.signature);
    // The first failure stands for all.
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
  if (known_ > 0) {
    return fmt::format("{} run{} until it counts as good, as asked", known_, known_ > 1 ? "s" : "");
  }
  return fmt::format(
      "failed in {} of {} runs, so in at least {:.3g} % of all: {} runs until it counts as good",
      failures_, measured_runs_, 100 * least_, runs_);
}

}  // namespace plumb::bisect
