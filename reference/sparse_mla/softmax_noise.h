// SPDX-License-Identifier: Apache-2.0
//
// Rounding errors in the softmax of one head: how uncertain each exponent is, which probabilities
// are rounded, and which of these errors are the same error.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "reference/bound.h"
#include "reference/dot_error.h"

namespace plumb::reference {

// Estimate allows 6 sigma. An error that comes of few roundings never exceeds its worst case, which
// is less than 6 of its sigma: it enters with a sixth of the worst case, beside the root of the sum
// of the variances.
inline constexpr double kSigmas = 6;
// Variance of a uniformly distributed rounding error, in squares of its largest value.
inline constexpr double kThird = 1.0 / 3;

// Unit roundoffs of the steps of an attention kernel.
struct AttentionUnits {
  double scalar = kUnitF32;  // one fp32 operation between the long sums
  double function = 0;       // exp2, log2, reciprocal: largest relative error
  double probability = 0;    // p as it enters the product with v; 0 = stays in fp32
};
AttentionUnits attention_units(const Numerics& numerics);

// Largest rounding of an fp32 number near x: half of its last place, between u|x| / 2 and u|x|.
double fp32_rounding(double x);
// The same of an exponent in natural units that a kernel keeps in base 2.
double exponent_rounding(double x);

// Of one head, over all candidates.
struct SoftmaxSummary {
  double mean_score = 0, score_deviation = 0;  // over the softmax
  double exponent_variance = 0;                // sum over groups of (share * exponent error)^2
  double largest_group_variance = 0;           // most of group_share * exponent error^2
  double worst_exponent = 0;                   // root of sum share * (largest exponent error)^2
  double growth = 1;  // exp is not linear: (e^2D - 1) / 2D for the largest error D of an exponent
  // How often an online softmax raises its maximum: expected, and at most.
  double rescales = 0, most_rescales = 0;
  // Candidates large enough that adding them to a sum rounds, and the share of all the others.
  std::int64_t added = 0;
  double lost_share = 0;
  double rounded_share = 0;  // of all candidates whose p is rounded
  // Variance of sum rounded_share_i e_i beyond that of independent e_i; 0 unless it is large. And
  // the same of the additions to the row sum, in squares of its last place.
  double coherence = 0, row_sum_coherence = 0;
};

class SoftmaxNoise {
 public:
  explicit SoftmaxNoise(const AttentionUnits& units) : units_(units) {}

  // One head: scores x_i = sm_scale * (q . k_i), p_i = exp(x_i - max) and their sum.
  void analyse(const Eigen::Ref<const Eigen::ArrayXd>& scores,
               const Eigen::Ref<const Eigen::ArrayXd>& weights, double sum);
  // Then the errors of the exponents; dot_squares_i = sum over `dims` of (q_d k_id)^2.
  void set_exponent_errors(const Eigen::Ref<const Eigen::ArrayXd>& scores,
                           const Eigen::Ref<const Eigen::ArrayXd>& dot_squares, std::int64_t dims,
                           double sm_scale, const SumErrorFactors& dot);
  // The candidate with the rank-th largest score.
  Eigen::Index ranked(std::int64_t rank) const { return sorted_[rank].index; }

  // Per candidate. Shares p_i / L add up to 1. Errors of candidates with equal scores are equal, so
  // that a variance takes share * group_share where independent errors would take share^2:
  // (sum over a group of share v)^2 <= group_share * sum over it of share v^2.
  const Eigen::ArrayXd& share() const { return share_; }
  const Eigen::ArrayXd& group_share() const { return group_share_; }
  const Eigen::ArrayXd& exponent_variance() const { return exponent_variance_; }
  // Of the score itself, before the maximum is subtracted.
  const Eigen::ArrayXd& score_variance() const { return score_variance_; }
  const Eigen::ArrayXd& worst_score() const { return worst_score_; }
  const Eigen::ArrayXd& centred_score() const { return centred_score_; }  // x_i - mean_score
  // Share of a candidate whose p is rounded: 0 for the maximum, whose p = 1 is exact.
  const Eigen::ArrayXd& rounded_share() const { return rounded_share_; }

  const SoftmaxSummary& summary() const { return summary_; }
  // Variance of sum rounded_share_i e_i f_i, e_i the rounding of p_i relative to its unit, f given
  // per candidate. Never below what independent roundings give.
  double rounding_variance(const Eigen::Ref<const Eigen::ArrayXd>& factors) const;
  // Largest part of the sum of `variances`, one per candidate, that one error gives: candidates
  // with equal scores have one.
  double concentration(const Eigen::Ref<const Eigen::ArrayXd>& variances) const;
  // The part of rounding_variance that `coherence` measures, for the factors in each row of
  // `values` [rows, count]: candidates that round together add up before they are squared. Slow:
  // for few heads.
  Eigen::ArrayXd coherent_variance(const Eigen::Ref<const Eigen::MatrixXd>& values) const;

 private:
  void group_equal_scores();
  void set_coherence(const Eigen::Ref<const Eigen::ArrayXd>& scores);
  double coherent_square(const Eigen::ArrayXd& terms, const Eigen::ArrayXd& places) const;

  struct ScoredCandidate {
    double score = 0;
    Eigen::Index index = 0;
  };
  AttentionUnits units_;
  SoftmaxSummary summary_;
  std::vector<ScoredCandidate> sorted_;  // by score, the maximum first
  Eigen::ArrayXd places_;                // of scores, in teeth of p's format below the maximum
  Eigen::ArrayXd share_, group_share_, exponent_variance_, centred_score_, rounded_share_;
  Eigen::ArrayXd score_variance_, worst_score_;
};

}  // namespace plumb::reference
