// SPDX-License-Identifier: Apache-2.0
#include "reference/compressor/appended_tokens.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/tracked/other_forms.h"
#include "reference/tracked/tracked.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

// exp(a - b) of each element.
Tracked exp_of_differences(std::vector<double> a, std::vector<double> b, const Numerics& numerics) {
  const TrackedSizes sizes{std::ssize(a)};
  return exp_by_exp2(Tracked(std::move(a), sizes, numerics) -
                     Tracked(std::move(b), sizes, numerics));
}

}  // namespace

AppendedTokens::AppendedTokens(const SegmentNumbers& numbers, std::int64_t channels,
                               const Numerics& numerics)
    : channels_(channels),
      first_(numbers.largest.empty() ? 1 : 0),
      quotient_(function_error(numerics)) {
  const std::vector<double>& score = numbers.score;
  std::vector<double> before, after;  // largest scores
  for (std::size_t i = 0; i < score.size(); ++i) {
    const bool is_first = i < static_cast<std::size_t>(channels);
    const double front = first_ == 0 ? numbers.largest[i % channels] : score[i];
    before.push_back(is_first ? front : after[i - channels]);
    after.push_back(std::max(before.back(), score[i]));
  }
  const Tracked of_state = exp_of_differences(before, after, numerics);
  const Tracked of_token = exp_of_differences(score, after, numerics);
  const auto relative = [](const Tracked& weights, std::int64_t i) -> RelativeError {
    const double weight = weights.values()[i];
    if (!(weight > 0)) return {};  // an exponential that underflows
    return {weights.sigma(i) / weight, weights.worst(i) / weight,
            weights.node()->one_sided(i) / weight};
  };
  for (std::int64_t i = 0; i < std::ssize(score); ++i) {
    AppendedToken made;
    made.kv = numbers.kv[i];
    made.after = {after[i], 1, made.kv};
    if (i >= channels || first_ == 0) {
      made.before = i >= channels ? steps_[i - channels].after
                                  : ChannelState{before[i], numbers.sum[i], numbers.mean[i]};
      const double a = made.before.sum * of_state.values()[i], b = of_token.values()[i];
      made.share = b / (a + b);
      made.after.sum = a + b;
      made.after.mean = (made.before.mean * a + made.kv * b) / (a + b);
      made.of_state = relative(of_state, i);
      made.of_token = relative(of_token, i);
    }
    steps_.push_back(made);
  }
}

// Adds the errors of one token. `behind`: effects on the result of relative errors of the sum, and
// of errors of the mean, behind the token. Returns those in front of it.
AppendedTokens::Effect AppendedTokens::add(const AppendedToken& step, const Effect& behind,
                                           Total& total) const {
  const double share = step.share, rest = 1 - share, lambda = behind.of_mean;
  const double pull = lambda * share * rest * (step.kv - step.before.mean);
  const double of_a = behind.of_sum * rest - pull, of_b = behind.of_sum * share + pull;
  const auto add_error = [&](double effect, const RelativeError& error) {
    total.variance += square(effect * error.sigma);
    total.worst += std::abs(effect) * error.worst;
    total.bias += std::abs(effect) * error.bias;
  };
  const auto of_size = [](double worst, double bias) {
    return RelativeError{worst * kUniformSigma, worst, bias};
  };
  const RelativeError rounding = of_size(kUnitF32, 0);
  add_error(of_a, step.of_state);
  add_error(of_b, step.of_token);
  add_error(of_a, rounding);                                           // a
  add_error(behind.of_sum - lambda * step.after.mean, rounding);       // s', by which m' is divided
  add_error(lambda * rest * step.before.mean, rounding);               // m a
  add_error(lambda * share * step.kv, rounding);                       // k b
  add_error(lambda * step.after.mean, rounding);                       // their sum
  add_error(lambda * step.after.mean, of_size(quotient_, quotient_));  // the quotient
  return {lambda * rest, of_a};
}

void AppendedTokens::put(std::int64_t count, std::int64_t channel, Effect effect,
                         Estimate& estimate) const {
  Total total;
  for (std::int64_t i = count - 1; i >= first_; --i) effect = add(step(i, channel), effect, total);
  estimate.sigma[channel] = std::sqrt(total.variance);
  estimate.worst[channel] = total.worst;
  estimate.row_mean_sigma[0] += total.variance;
  estimate.row_systematic[0] += total.bias / static_cast<double>(channels_);
}

OnlineStateRow AppendedTokens::state(std::int64_t count) const {
  OnlineStateRow row;
  for (Estimate* const estimate : {&row.sum, &row.mean}) {
    estimate->output = Format::f32;
    estimate->resize(1, channels_);
  }
  for (std::int64_t d = 0; d < channels_; ++d) {
    const ChannelState& last = step(count - 1, d).after;
    row.largest.push_back(last.largest);
    row.sum.value[d] = last.sum;
    row.mean.value[d] = last.mean;
    put(count, d, {.of_mean = 0, .of_sum = last.sum}, row.sum);
    put(count, d, {.of_mean = 1, .of_sum = 0}, row.mean);
  }
  for (Estimate* const estimate : {&row.sum, &row.mean}) {
    double& sigma = estimate->row_mean_sigma[0];
    sigma = std::sqrt(sigma) / static_cast<double>(channels_);
  }
  return row;
}

}  // namespace plumb::reference
