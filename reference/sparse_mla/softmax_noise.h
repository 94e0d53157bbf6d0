// SPDX-License-Identifier: Apache-2.0
//
// Rounding errors in the softmax of one head: the error of each exponent, the rounding of each
// probability, and the correlations between these errors.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "reference/bound.h"
#include "reference/dot_error.h"

namespace plumb::reference {

// Estimate allows 6 sigma. An error that consists of few roundings never exceeds its worst case,
// which is less than 6 of its sigma. So a sixth of the worst case is added to sigma after the root
// of the sum of the variances.
inline constexpr double kSigmas = 6;
// Variance of a uniformly distributed rounding error, as a fraction of its squared largest value.
inline constexpr double kThird = 1.0 / 3;

// Unit roundoffs of the steps of an attention kernel.
struct AttentionUnits {
  double scalar = kUnitF32;  // one fp32 operation outside the long sums
  double function = 0;       // exp2, log2, reciprocal: largest relative error
  double probability = 0;    // rounding of p before the product with v; 0 = p stays fp32
};
AttentionUnits attention_units(const Numerics& numerics);

// Largest rounding error of an fp32 number near x: half its last place, which is between u|x| / 2
// and u|x|.
double fp32_rounding(double x);
// Largest rounding error of an exponent that a kernel keeps in base 2, in natural units.
double exponent_rounding(double x);

// Totals of one head over all candidates. A group: the candidates with equal scores, which have
// equal errors.
struct SoftmaxSummary {
  double mean_score = 0, score_deviation = 0;  // weighted with the softmax
  double exponent_variance = 0;                // sum over groups of (share * exponent error)^2
  double largest_group_variance = 0;           // maximum of group_share * exponent error^2
  double worst_exponent = 0;                   // root of sum share * (largest exponent error)^2

  // Factor for the nonlinearity of exp: (e^2D - 1) / 2D for the largest error D of an exponent.
  double growth = 1;
  // Number of new maxima in an online softmax: expected, and largest possible.
  double rescales = 0, most_rescales = 0;
  // Number of candidates large enough to count in a sum, and the share of all others.
  std::int64_t added = 0;
  double lost_share = 0;
  double rounded_share = 0;  // share of all candidates whose p is rounded
  // coherence: variance of sum rounded_share_i e_i in excess of that of independent e_i; 0 unless
  // the excess is large. row_sum_coherence: the same for the additions to the row sum, in squares
  // of its last place.
  double coherence = 0, row_sum_coherence = 0;
};

class SoftmaxNoise {
 public:
  explicit SoftmaxNoise(const AttentionUnits& units) : units_(units) {}

  // Analyses one head: scores x_i = sm_scale * (q . k_i), weights p_i = exp(x_i - max) and their
  // sum.
  void analyse(const Eigen::Ref<const Eigen::ArrayXd>& scores,
               const Eigen::Ref<const Eigen::ArrayXd>& weights, double sum);
  // Call after analyse(): sets the errors of the exponents. dot_squares_i = sum over `dims` of (q_d
  // k_id)^2.
  void set_exponent_errors(const Eigen::Ref<const Eigen::ArrayXd>& scores,
                           const Eigen::Ref<const Eigen::ArrayXd>& dot_squares, std::int64_t dims,
                           double sm_scale, const SumErrorFactors& dot);
  // Index of the candidate with the rank-th largest score.
  Eigen::Index ranked(std::int64_t rank) const { return sorted_[rank].index; }

  // Arrays per candidate. share: p_i / L, which add up to 1. Errors of candidates with equal scores
  // are equal. So variances use share * group_share where independent errors would use share^2:
  // (sum over a group of share v)^2 <= group_share * sum over the group of share v^2.
  const Eigen::ArrayXd& share() const { return share_; }
  const Eigen::ArrayXd& group_share() const { return group_share_; }
  const Eigen::ArrayXd& exponent_variance() const { return exponent_variance_; }
  // Errors of the score before the maximum is subtracted.
  const Eigen::ArrayXd& score_variance() const { return score_variance_; }
  const Eigen::ArrayXd& worst_score() const { return worst_score_; }
  const Eigen::ArrayXd& centred_score() const { return centred_score_; }  // x_i - mean_score
  // Share of the candidate if its p is rounded. 0 for the maximum, whose p = 1 is exact.
  const Eigen::ArrayXd& rounded_share() const { return rounded_share_; }

  const SoftmaxSummary& summary() const { return summary_; }
  // Variance of sum rounded_share_i e_i f_i, where e_i is the rounding of p_i relative to its unit
  // and f_i a given factor. At least the variance of independent roundings.
  double rounding_variance(const Eigen::Ref<const Eigen::ArrayXd>& factors) const;
  // `variances` has one number per candidate. Returns the largest share of their sum that comes
  // from one error. Candidates with equal scores share one error.
  double concentration(const Eigen::Ref<const Eigen::ArrayXd>& variances) const;
  // The part of rounding_variance that `coherence` measures, for factors in each row of `values`
  // [rows, count]: effects of candidates that round together are added before they are squared.
  // Slow, so only for few heads.
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
  std::vector<ScoredCandidate> sorted_;  // by descending score
  // Distance of each score below the maximum, in teeth. One tooth: the difference of scores between
  // two neighbouring numbers p of the format of p.
  Eigen::ArrayXd places_;
  Eigen::ArrayXd share_, group_share_, exponent_variance_, centred_score_, rounded_share_;
  Eigen::ArrayXd score_variance_, worst_score_;
};

}  // namespace plumb::reference
