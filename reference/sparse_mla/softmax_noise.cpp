// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/softmax_noise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace plumb::reference {

namespace {

// Scores that differ by less than this are equal scores in any fp32 kernel. Their difference in
// double comes from rounding alone.
double same_score(double largest) { return 0x1p-40 * std::max(1.0, std::abs(largest)); }

}  // namespace

double fp32_rounding(double x) {
  // A number just below a power of two may have been rounded up to the power.
  const auto bits = std::bit_cast<std::uint64_t>(x * (1 + 0x1p-16));
  return kUnitF32 * std::bit_cast<double>(bits & 0x7ff0000000000000);
}

double exponent_rounding(double x) {
  return fp32_rounding(x * std::numbers::log2e) / std::numbers::log2e;
}

AttentionUnits attention_units(const Numerics& numerics) {
  AttentionUnits units;
  units.function = numerics.function_ulp * 2 * kUnitF32;
  const double u = unit_roundoff(numerics.probability);
  units.probability = u > kUnitF32 ? u : 0;
  return units;
}

void SoftmaxNoise::analyse(const Eigen::Ref<const Eigen::ArrayXd>& scores,
                           const Eigen::Ref<const Eigen::ArrayXd>& weights, double sum) {
  share_ = weights / sum;
  summary_ = {};
  summary_.mean_score = (share_ * scores).sum();
  centred_score_ = scores - summary_.mean_score;
  summary_.score_deviation = std::sqrt((share_ * centred_score_.square()).sum());
  sorted_.resize(static_cast<std::size_t>(scores.size()));
  for (Eigen::Index i = 0; i < scores.size(); ++i) sorted_[i] = {scores[i], i};
  std::sort(sorted_.begin(), sorted_.end(), [](const ScoredCandidate& a, const ScoredCandidate& b) {
    return a.score > b.score || (a.score == b.score && a.index < b.index);
  });
  group_equal_scores();
  // Kernels process blocks of at least 16 keys. In random order, block b has a new maximum with
  // probability 1/b.
  summary_.most_rescales = static_cast<double>(scores.size()) / 16;
  summary_.rescales = std::log1p(summary_.most_rescales);
  summary_.rounded_share = rounded_share_.sum();
  summary_.added = (share_ >= kUnitF32).count();
  summary_.lost_share = (share_ < kUnitF32).select(share_, 0.0).sum();
  set_coherence(scores);
}

// Two roundings are sawtooth functions of the score: that of p in its own format, relative to p,
// and that of adding p to the row sum, whose last place is an absolute distance. Only terms added
// in the last binade of the row sum, half of all, have that last place.
void SoftmaxNoise::set_coherence(const Eigen::Ref<const Eigen::ArrayXd>& scores) {
  if (units_.probability > 0) {
    places_ = (sorted_.front().score - scores) / (2 * units_.probability);
    const double apart = rounded_share_.square().sum();
    const double together = coherent_square(rounded_share_, places_) - apart;
    // A smaller excess comes from chance.
    if (together > apart / 2) summary_.coherence = together;
  }
  const Eigen::ArrayXd ones = (rounded_share_ >= kUnitF32).cast<double>();
  const Eigen::ArrayXd sum_places = (share_.maxCoeff() - share_) / (2 * units_.scalar);
  summary_.row_sum_coherence = std::max(0.0, coherent_square(ones, sum_places) - ones.sum()) / 2;
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

// Errors of the exponent: the long sum q.k, its product with the rounded constant, the subtraction
// of the maximum, exp2 itself, and the factors by which an online softmax rescales its sums.
void SoftmaxNoise::set_exponent_errors(const Eigen::Ref<const Eigen::ArrayXd>& scores,
                                       const Eigen::Ref<const Eigen::ArrayXd>& dot_squares,
                                       std::int64_t dims, double sm_scale,
                                       const SumErrorFactors& dot) {
  const double u = units_.scalar, f = units_.function;
  const double top = sorted_.front().score;
  const Eigen::ArrayXd scaling = scores.unaryExpr(&exponent_rounding);
  const Eigen::ArrayXd subtraction = (scores - top).unaryExpr(&exponent_rounding);
  score_variance_ = dot.of_squares * square(sm_scale) * dot_squares +
                    dot.of_total * scores.square() + kThird * scaling.square();
  exponent_variance_ = score_variance_ + kThird * (subtraction.square() + square(u) +
                                                   square(f) * (1 + summary_.rescales));
  // By Cauchy-Schwarz, sum |q_d k_d| <= sqrt(dims * sum (q_d k_d)^2).
  const double magnitude =
      dot.of_magnitudes * std::abs(sm_scale) * std::sqrt(static_cast<double>(dims));
  worst_score_ = magnitude * dot_squares.sqrt() + scaling + 2 * u * scores.abs();
  const Eigen::ArrayXd largest = worst_score_ + subtraction + u + f * (1 + summary_.most_rescales);
  summary_.worst_exponent = std::sqrt((share_ * largest.square()).sum());
  summary_.exponent_variance = (share_ * group_share_ * exponent_variance_).sum();
  summary_.largest_group_variance = (group_share_ * exponent_variance_).maxCoeff();
  const double widest = (kSigmas * exponent_variance_.sqrt()).min(largest).maxCoeff();
  summary_.growth =
      widest < 1e-3 ? 1 + widest : std::expm1(std::min(2 * widest, 60.0)) / (2 * widest);
}

double SoftmaxNoise::rounding_variance(const Eigen::Ref<const Eigen::ArrayXd>& factors) const {
  const Eigen::ArrayXd terms = rounded_share_ * factors;
  if (units_.probability == 0) return 0;
  return std::max(terms.square().sum(), coherent_square(terms, places_));
}

double SoftmaxNoise::concentration(const Eigen::Ref<const Eigen::ArrayXd>& variances) const {
  const double tolerance = same_score(sorted_.front().score);
  double sum = 0, largest = 0;
  for (std::size_t begin = 0, end = 0; begin < sorted_.size(); begin = end) {
    double together = 0;
    while (end < sorted_.size() && sorted_[begin].score - sorted_[end].score <= tolerance) {
      together += variances[sorted_[end++].index];
    }
    sum += together;
    largest = std::max(largest, together);
  }
  return sum > 0 ? largest / sum : 0;
}

Eigen::ArrayXd SoftmaxNoise::coherent_variance(
    const Eigen::Ref<const Eigen::MatrixXd>& values) const {
  // Candidates within one cell count as rounding together. Length of a cell, in teeth (places_).
  constexpr double kCell = 0.5;
  Eigen::ArrayXd variance = Eigen::ArrayXd::Zero(values.rows());
  double shares = 0;
  for (std::size_t begin = 0, end = 0; begin < sorted_.size(); begin = end) {
    Eigen::VectorXd sum = Eigen::VectorXd::Zero(values.rows());
    double share = 0;
    const double place = places_[sorted_[begin].index];
    for (; end < sorted_.size() && places_[sorted_[end].index] - place < kCell; ++end) {
      const Eigen::Index i = sorted_[end].index;
      sum += rounded_share_[i] * values.col(i);
      share += rounded_share_[i];
    }
    variance += sum.array().square();
    shares += square(share);
  }
  return variance * (summary_.coherence / shares);
}

// Sum over pairs of t_i t_j c(|place_i - place_j|). The position of a number between two neighbours
// of a format is a sawtooth function of the number; a tooth is the distance of the neighbours. If
// two numbers are r of a tooth apart and the position of the first is random, their roundings have
// the correlation c = 1 - 6r + 6r^2. It sums to zero over a tooth: numbers that are spread widely
// round independently, and numbers that are nearly equal round together. `places` counts teeth and
// ascends in the order of sorted_.
double SoftmaxNoise::coherent_square(const Eigen::ArrayXd& terms,
                                     const Eigen::ArrayXd& places) const {
  double zeroth = 0, first = 0, second = 0;  // moments of the distances to terms within one tooth
  double total = 0, here = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < sorted_.size(); ++i) {
    const double step = places[sorted_[i].index] - here;
    here += step;
    second += 2 * step * first + step * step * zeroth;
    first += step * zeroth;
    for (; begin < i && here - places[sorted_[begin].index] >= 1; ++begin) {
      const double t = terms[sorted_[begin].index];
      const double distance = here - places[sorted_[begin].index];
      zeroth -= t;
      first -= t * distance;
      second -= t * distance * distance;
    }
    if (begin == i) zeroth = first = second = 0;
    const double t = terms[sorted_[i].index];
    total += t * (t + 2 * (zeroth - 6 * first + 6 * second));
    zeroth += t;
  }
  return total;
}

}  // namespace plumb::reference
