// SPDX-License-Identifier: Apache-2.0
#include "reference/compressor/online_states.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/compressor/appended_tokens.h"
#include "reference/tracked/other_forms.h"
#include "reference/tracked/tracked.h"

namespace plumb::reference {

namespace {

// Scores of -inf become numbers so far below the largest one in front of them that exp yields 0,
// because tracked arrays have no error of a difference of infinities. A fresh state is that far
// below the first score.
constexpr double kFarBelow = 1000;

void bury_infinities(std::int64_t channels, SegmentNumbers& numbers) {
  for (std::int64_t d = 0; d < channels; ++d) {
    const bool fresh = !numbers.largest.empty() && numbers.largest[d] == -kInfinity;
    if (fresh) numbers.largest[d] = numbers.score[d] - kFarBelow;
    double largest = numbers.largest.empty() ? numbers.score[d] : numbers.largest[d];
    for (std::int64_t at = d; at < std::ssize(numbers.score); at += channels) {
      double& score = numbers.score[at];
      if (score == -kInfinity) score = largest - kFarBelow;
      largest = std::max(largest, score);
    }
  }
}

// The sum of two fp32 numbers in double, rounded to fp32, is equal to the fp32 sum. Every kernel
// therefore has the same scores.
SegmentNumbers numbers_of_segment(const OnlineTokens& input, const OnlineSegment& segment) {
  SegmentNumbers numbers;
  const std::int64_t dim = input.head_dim;
  if (segment.state != nullptr) {
    numbers.largest.assign(segment.state, segment.state + dim);
    numbers.sum.assign(segment.state + dim, segment.state + 2 * dim);
    numbers.mean.assign(segment.state + 2 * dim, segment.state + 3 * dim);
  }
  for (std::int64_t i = 0; i < segment.tokens; ++i) {
    const std::int64_t token = segment.first_token + i;
    const float* kv = input.kv + token * input.kv_row_stride;
    const float* score = input.score + token * input.score_row_stride;
    const float* ape = input.ape + (segment.phase + i) * dim;
    for (std::int64_t d = 0; d < dim; ++d) {
      const double sum = static_cast<double>(score[d]) + static_cast<double>(ape[d]);
      numbers.score.push_back(static_cast<double>(static_cast<float>(sum)));
      numbers.kv.push_back(kv[d]);
    }
  }
  return numbers;
}

// A state as tracked arrays, [1, head_dim] each.
struct TrackedState {
  Tracked largest, sum, mean;
};

TrackedState merged(TrackedState a, TrackedState b) {
  Tracked largest = max(a.largest, b.largest);
  const Tracked of_a = std::move(a.sum) * exp_by_exp2(std::move(a.largest) - largest);
  const Tracked of_b = std::move(b.sum) * exp_by_exp2(std::move(b.largest) - largest);
  Tracked sum = of_a + of_b;
  Tracked mean = (std::move(a.mean) * of_a + std::move(b.mean) * of_b) / sum;
  return {std::move(largest), std::move(sum), std::move(mean)};
}

class TrackedSegment {
 public:
  TrackedSegment(const SegmentNumbers& numbers, std::int64_t dim, const Numerics& numerics)
      : numbers_(numbers), dim_(dim), numerics_(numerics) {}

  bool has_state() const { return !numbers_.largest.empty(); }

  TrackedState state_in_front() const {
    return {row_of(numbers_.largest, 0), row_of(numbers_.sum, 0), row_of(numbers_.mean, 0)};
  }

  // The first `count` tokens at once. Kernels divide a segment among threads, so that a weight is a
  // product of two exponentials, and divide by the sum before or after they add up. This adds the
  // error of an exponential, and two roundings, which are one ulp.
  TrackedState at_once(std::int64_t count) const {
    Numerics how = numerics_;
    how.function_ulp = 2 * how.function_ulp + 1;
    how.chains = 1;  // worst case: in order
    const Tracked score = first_rows(numbers_.score, count, how);
    const Tracked largest = max(score, 0);
    const Tracked weights = exp_by_exp2(score - largest);
    const Tracked sums = sum(weights, 0);
    const Tracked means = sum(weights * first_rows(numbers_.kv, count, how), 0) / sums;
    TrackedState segment{row_of(largest.values(), 0), own_numerics(sums), own_numerics(means)};
    return has_state() ? merged(state_in_front(), std::move(segment)) : segment;
  }

 private:
  Tracked row_of(const std::vector<double>& numbers, std::int64_t row) const {
    const auto begin = numbers.begin() + row * dim_;
    return {{begin, begin + dim_}, {1, dim_}, numerics_};
  }

  Tracked first_rows(const std::vector<double>& numbers, std::int64_t rows,
                     const Numerics& how) const {
    return {{numbers.begin(), numbers.begin() + rows * dim_}, {rows, dim_}, how};
  }

  // The same numbers and errors, for results that have this segment's numerics.
  Tracked own_numerics(const Tracked& row) const {
    return with_errors(row_of(row.values(), 0), estimate_of(row, Format::f32));
  }

  const SegmentNumbers& numbers_;
  std::int64_t dim_;
  const Numerics& numerics_;
};

// Kernels may flush subnormal weights and products to zero: one weight and one product for each of
// `terms` terms, divided by a sum of at least 1.
double flushed(std::int64_t terms, double magnitude) {
  return 0x1p-126 * static_cast<double>(terms) * (1 + magnitude);
}

// The estimate of one row with the larger errors of both forms, which have the same exact value.
Estimate wider(Estimate a, const Estimate& b, std::int64_t terms, double magnitude) {
  const double underflow = flushed(terms, magnitude);
  for (std::int64_t i = 0; i < a.columns; ++i) {
    const double apart = std::abs(a.centre(i) - b.centre(i));
    a.sigma[i] = std::max(a.sigma[i], b.sigma[i] + apart) + underflow;
    a.worst[i] = std::max(a.worst[i], b.worst[i] + apart) + underflow;
  }
  for (const auto row : {&Estimate::row_mean_sigma, &Estimate::row_systematic}) {
    (a.*row)[0] = std::max((a.*row)[0], (b.*row)[0]);
  }
  return a;
}

double largest_magnitude(const SegmentNumbers& numbers) {
  double largest = 0;
  for (const double kv : numbers.kv) largest = std::max(largest, std::abs(kv));
  for (const double kv : numbers.mean) largest = std::max(largest, std::abs(kv));
  return largest;
}

std::vector<OnlineStateRow> states_of_segment(const OnlineTokens& input,
                                              const OnlineSegment& tokens, StateOf which,
                                              const Numerics& numerics) {
  SegmentNumbers numbers = numbers_of_segment(input, tokens);
  bury_infinities(input.head_dim, numbers);
  const double magnitude = largest_magnitude(numbers);
  const AppendedTokens one_by_one(numbers, input.head_dim, numerics);
  const TrackedSegment segment(numbers, input.head_dim, numerics);
  std::vector<OnlineStateRow> rows;
  const std::int64_t first = which == StateOf::every_token ? 1 : tokens.tokens;
  for (std::int64_t count = first; count <= tokens.tokens; ++count) {
    const TrackedState at_once = segment.at_once(count);
    OnlineStateRow row = one_by_one.state(count);
    row.sum = wider(std::move(row.sum), estimate_of(at_once.sum, Format::f32), count + 1, 1);
    row.mean =
        wider(std::move(row.mean), estimate_of(at_once.mean, Format::f32), count + 1, magnitude);
    rows.push_back(std::move(row));
  }
  return rows;
}

void append(const std::vector<double>& more, std::vector<double>& to) {
  to.insert(to.end(), more.begin(), more.end());
}

void append_row(const Estimate& row, Estimate& all) {
  append(row.value, all.value);
  append(row.sigma, all.sigma);
  append(row.worst, all.worst);
  append(row.shift.empty() ? std::vector<double>(row.value.size()) : row.shift, all.shift);
  append(row.row_mean_sigma, all.row_mean_sigma);
  append(row.row_systematic, all.row_systematic);
  ++all.rows;
}

OnlineStates joined_rows(const std::vector<std::vector<OnlineStateRow>>& rows, std::int64_t dim) {
  OnlineStates all;
  for (Estimate* const estimate : {&all.sum, &all.mean}) {
    estimate->output = Format::f32;
    estimate->columns = dim;
  }
  for (const auto& of_segment : rows) {
    for (const OnlineStateRow& row : of_segment) {
      append(row.largest, all.largest);
      append_row(row.sum, all.sum);
      append_row(row.mean, all.mean);
    }
  }
  return all;
}

}  // namespace

std::vector<OnlineSegment> online_segments(std::int64_t first_token, std::int64_t tokens,
                                           std::int64_t position, const float* state) {
  std::vector<OnlineSegment> segments;
  while (tokens > 0) {
    const std::int64_t phase = position % kOnlineGroup;
    const std::int64_t count = std::min(tokens, kOnlineGroup - phase);
    segments.push_back({first_token, count, phase, phase == 0 ? nullptr : state});
    first_token += count;
    position += count;
    tokens -= count;
  }
  return segments;
}

OnlineStates online_states(const OnlineTokens& input, const std::vector<OnlineSegment>& segments,
                           StateOf which, const Numerics& numerics) {
  std::vector<std::vector<OnlineStateRow>> rows(segments.size());
  parallel_for(std::ssize(segments), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      rows[i] = states_of_segment(input, segments[i], which, numerics);
    }
  });
  return joined_rows(rows, input.head_dim);
}

}  // namespace plumb::reference
