// SPDX-License-Identifier: Apache-2.0
#include "reference/softmax_noise.h"

#include <algorithm>
#include <cmath>

#include "reference/kv_cache.h"

namespace plumb::reference {

namespace {

constexpr double kThird = 1.0 / 3;

double square(double x) { return x * x; }

// Scores nearer than this are one score to any fp32 kernel, and apart in double only by its
// rounding.
double same_score(double largest) { return 0x1p-40 * std::max(1.0, std::abs(largest)); }

}  // namespace

AttentionUnits attention_units(const Numerics& numerics) {
  AttentionUnits units;
  units.function = numerics.function_ulp * 2 * kUnitF32;
  const double u = unit_roundoff(numerics.probability);
  units.probability = u > kUnitF32 ? u : 0;
  return units;
}

SumErrorFactors sum_error_factors(std::int64_t terms, const Numerics& numerics) {
  const SumError scattered = sum_error(terms, 0, 1, 1, numerics);
  const SumError alike = sum_error(terms, 1, 1, 0, numerics);
  return {square(scattered.sigma), square(alike.sigma), scattered.worst};
}

SoftmaxNoise::SoftmaxNoise(const Numerics& numerics)
    : numerics_(numerics), units_(attention_units(numerics)) {}

void SoftmaxNoise::analyse(const Eigen::Ref<const Eigen::ArrayXd>& scores,
                           const Eigen::Ref<const Eigen::ArrayXd>& weights, double sum,
                           const Eigen::Ref<const Eigen::ArrayXd>& dot_squares, double sm_scale) {
  share_ = weights / sum;
  mean_score = (share_ * scores).sum();
  centred_score_ = scores - mean_score;
  score_deviation = std::sqrt((share_ * centred_score_.square()).sum());
  sorted_.resize(static_cast<std::size_t>(scores.size()));
  for (Eigen::Index i = 0; i < scores.size(); ++i) sorted_[i] = {scores[i], i};
  std::sort(sorted_.begin(), sorted_.end(), [](const Candidate& a, const Candidate& b) {
    return a.score > b.score || (a.score == b.score && a.index < b.index);
  });
  group_equal_scores();
  set_exponent_errors(scores, dot_squares, sm_scale);

  lost_share = (weights < kUnitF32 * sum).select(share_, 0.0).sum();
  const double together = coherent_square(rounded_share_);
  coherence = std::max(0.0, together - rounded_share_.square().sum());
}

void SoftmaxNoise::group_equal_scores() {
  group_share_.resize(share_.size());
  rounded_share_ = share_;
  const double tolerance = same_score(sorted_.front().score);
  for (std::size_t begin = 0, end = 0; begin < sorted_.size(); begin = end) {
    double total = 0;
    while (end < sorted_.size() && sorted_[begin].score - sorted_[end].score <= tolerance) {
      total += share_[sorted_[end++].index];
    }
    for (std::size_t i = begin; i < end; ++i) {
      group_share_[sorted_[i].index] = total;
      if (begin == 0) rounded_share_[sorted_[i].index] = 0;
    }
  }
}

// Error of the exponent: the long sum q.k, its product with the rounded constant, the subtraction
// of the maximum; exp2 itself; and the factors by which an online softmax rescales what it has.
void SoftmaxNoise::set_exponent_errors(const Eigen::Ref<const Eigen::ArrayXd>& scores,
                                       const Eigen::Ref<const Eigen::ArrayXd>& dot_squares,
                                       double sm_scale) {
  const SumErrorFactors dot = sum_error_factors(kMlaDim, numerics_);
  const double u = units_.scalar, f = units_.function;
  const double top = sorted_.front().score;
  exponent_variance_ = dot.of_squares * square(sm_scale) * dot_squares +
                       dot.of_total * scores.square() +
                       kThird * square(u) * (scores.square() + (scores - top).square()) +
                       kThird * square(f) * (1 + rescales()) + kThird * square(u);
  // By Cauchy, sum |q_d k_d| <= sqrt(512 * sum (q_d k_d)^2).
  const double magnitude = dot.of_magnitudes * std::abs(sm_scale) * std::sqrt(double{kMlaDim});
  const Eigen::ArrayXd largest = magnitude * dot_squares.sqrt() +
                                 u * (1 + 3 * scores.abs() + (scores - top).abs()) +
                                 f * (1 + most_rescales());
  worst_square = (share_ * largest.square()).sum();
  lse_variance = (share_ * group_share_ * exponent_variance_).sum();
  largest_group_variance = (group_share_ * exponent_variance_).maxCoeff();
  const double widest = (6 * exponent_variance_.sqrt()).min(largest).maxCoeff();
  growth = widest < 1e-3 ? 1 + widest : std::expm1(std::min(2 * widest, 60.0)) / (2 * widest);
}

// Blocks of 16 candidates are the smallest in use; in random order the b-th block holds a new
// maximum with probability 1/b.
double SoftmaxNoise::rescales() const { return std::log1p(most_rescales()); }
double SoftmaxNoise::most_rescales() const { return static_cast<double>(sorted_.size()) / 16; }

double SoftmaxNoise::rounding_variance(const Eigen::Ref<const Eigen::ArrayXd>& factors) const {
  const Eigen::ArrayXd terms = rounded_share_ * factors;
  return std::max(terms.square().sum(), coherent_square(terms));
}

// Sum over pairs of t_i t_j c(x_i - x_j). Where p falls between two neighbours of its format is a
// sawtooth of the score; two scores a part r of a tooth apart have errors with correlation
// 1 - 6r + 6r^2 if the place of the first is random. It sums to zero over a tooth: scores spread
// wide round independently, scores nearly equal round together.
double SoftmaxNoise::coherent_square(const Eigen::Ref<const Eigen::ArrayXd>& terms) const {
  if (units_.probability == 0) return 0;
  const double tooth = 2 * units_.probability;
  const double top = sorted_.front().score;
  double zeroth = 0, first = 0, second = 0;  // moments of the terms less than a tooth above
  double total = 0;
  std::size_t begin = 0;
  for (const Candidate& candidate : sorted_) {
    const double place = (top - candidate.score) / tooth;
    if (place > 60 / tooth) break;  // p below 1e-26
    for (; place - (top - sorted_[begin].score) / tooth >= 1; ++begin) {
      const double t = terms[sorted_[begin].index];
      const double at = (top - sorted_[begin].score) / tooth;
      zeroth -= t;
      first -= t * at;
      second -= t * at * at;
    }
    const double t = terms[candidate.index];
    const double distance = place * zeroth - first;
    const double distance_square = place * place * zeroth - 2 * place * first + second;
    total += t * (t + 2 * (zeroth - 6 * distance + 6 * distance_square));
    zeroth += t;
    first += t * place;
    second += t * place * place;
  }
  return total;
}

}  // namespace plumb::reference
