// SPDX-License-Identifier: Apache-2.0
//
// Rounding errors in the softmax of one head: how uncertain each exponent is, which probabilities
// are rounded, and which of these errors are the same error.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "reference/bound.h"

namespace plumb::reference {

// Unit roundoffs of the steps of an attention kernel.
struct AttentionUnits {
  double scalar = kUnitF32;  // one fp32 operation between the long sums
  double function = 0;       // exp2, log2, reciprocal: largest relative error
  double probability = 0;    // p as it enters the product with v; 0 = stays in fp32
};
AttentionUnits attention_units(const Numerics& numerics);

// Rounding error of a sum of terms t: variance = of_squares * sum t^2 + of_total * (sum t)^2,
// worst = of_magnitudes * sum |t|.
struct SumErrorFactors {
  double of_squares = 0, of_total = 0, of_magnitudes = 0;
};
SumErrorFactors sum_error_factors(std::int64_t terms, const Numerics& numerics);

class SoftmaxNoise {
 public:
  explicit SoftmaxNoise(const Numerics& numerics);

  // One head: scores x_i = sm_scale * (q . k_i), p_i = exp(x_i - max) and their sum, and
  // dot_squares_i = sum_d (q_d k_id)^2.
  void analyse(const Eigen::Ref<const Eigen::ArrayXd>& scores,
               const Eigen::Ref<const Eigen::ArrayXd>& weights, double sum,
               const Eigen::Ref<const Eigen::ArrayXd>& dot_squares, double sm_scale);

  // Per candidate. Shares p_i / L add up to 1. Errors of candidates with equal scores are equal, so
  // that a variance takes share * group_share where independent errors would take share^2:
  // (sum over a group of share v)^2 <= group_share * sum over it of share v^2.
  const Eigen::ArrayXd& share() const { return share_; }
  const Eigen::ArrayXd& group_share() const { return group_share_; }
  const Eigen::ArrayXd& exponent_variance() const { return exponent_variance_; }
  const Eigen::ArrayXd& centred_score() const { return centred_score_; }  // x_i - mean_score
  // Share of a candidate whose p is rounded: 0 for the maximum, whose p = 1 is exact.
  const Eigen::ArrayXd& rounded_share() const { return rounded_share_; }

  double mean_score = 0, score_deviation = 0;  // over the softmax
  double lse_variance = 0;                     // sum over groups of (share * exponent error)^2
  double largest_group_variance = 0;           // most of group_share * exponent_variance
  double worst_square = 0;                     // sum share * (largest exponent error)^2
  double growth = 1;  // exp is not linear: (e^2D - 1) / 2D for the largest error D of an exponent
  // Expected and largest number of times that an online softmax raises its maximum.
  double rescales() const;
  double most_rescales() const;
  double lost_share = 0;  // candidates so small that adding them to the row sum changes nothing
  // Variance of sum rounded_share_i e_i f_i, e_i the rounding of p_i relative to its unit, f given
  // per candidate. Never below what independent roundings give.
  double rounding_variance(const Eigen::Ref<const Eigen::ArrayXd>& factors) const;
  // The part of it, for f = 1, by which it exceeds independent roundings.
  double coherence = 0;

 private:
  void set_exponent_errors(const Eigen::Ref<const Eigen::ArrayXd>& scores,
                           const Eigen::Ref<const Eigen::ArrayXd>& dot_squares, double sm_scale);
  void group_equal_scores();
  double coherent_square(const Eigen::Ref<const Eigen::ArrayXd>& terms) const;

  struct Candidate {
    double score = 0;
    Eigen::Index index = 0;
  };
  Numerics numerics_;
  AttentionUnits units_;
  std::vector<Candidate> sorted_;  // by score, the maximum first
  Eigen::ArrayXd share_, group_share_, exponent_variance_, centred_score_, rounded_share_;
};

}  // namespace plumb::reference
