// SPDX-License-Identifier: Apache-2.0
//
// How far a correct softmax attention may be from `attend`, to first order in the roundings.
// Rounding p_i changes only the numerator, because the row sum L takes p before it is rounded: the
// output changes by e_i p_i v_i / L. An error of the exponent changes both: the output changes by
// e_i p_i (v_i - o) / L. Sums over candidates are sequential; `Numerics::chains` applies to q.k
// only.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "reference/sparse_mla/mla_attention.h"
#include "reference/sparse_mla/softmax_noise.h"

namespace plumb::reference {

struct MlaError {
  Eigen::ArrayXXd sigma, worst;                         // [512, heads] errors of MlaAttention::out
  Eigen::ArrayXd mean_sigma, systematic;                // [heads] mean over d of sign(out) * error
  Eigen::ArrayXd mean_size;                             // [heads] mean over d of |out|
  Eigen::ArrayXd concentration;                         // [heads] Estimate::row_concentration
  Eigen::ArrayXd lse_sigma, lse_worst, lse_systematic;  // [heads] errors of MlaAttention::lse
  Eigen::ArrayXd max_sigma, max_worst, max_systematic;  // [heads] errors of MlaAttention::max
};

// Estimates rows one after the other and reuses its buffers between them.
class MlaErrorModel {
 public:
  explicit MlaErrorModel(const Numerics& numerics);
  // Without keys, and for heads with a NaN score, all errors are 0: the result is exact or NaN.
  void estimate(const GatheredKeys& keys, double sm_scale, const MlaAttention& attention,
                MlaError& error);

 private:
  struct Head {
    bool finite = false;
    SoftmaxSummary softmax;
    SumErrorFactors adding;  // errors of the row sum, over candidates that are not negligible
    SumErrorFactors values;  // errors of the sum of p v over the same candidates
    double row_sum = 0;      // variance of the row sum, relative to its square
    double rescaling = 0;  // variance from rescaling at a new maximum, relative to a squared output
    double lost = 0;       // sigma from candidates too small to be added fully
    double flushed = 0;    // largest error from underflow
    double worst_adding = 0, worst_lost = 0;
    double constant = 0;  // largest relative error common to all scores
    double order = 0;     // sigma common to the row's scores, from truncation (order_of_sums)
  };

  SumErrorFactors dot_factors(const KeyMatrix& keys, const MlaAttention& attention,
                              Eigen::Index head) const;
  SumErrorFactors matrix_dot_factors(const KeyMatrix& keys, const MlaAttention& attention,
                                     Eigen::Index head) const;
  SumErrorFactors value_factors(std::int64_t added, double share_squares,
                                const SumErrorFactors& adding) const;
  double normalising() const;  // largest relative error
  double order_of_sums(const KeyMatrix& keys, const MlaAttention& attention, double sm_scale,
                       const SumErrorFactors& dot, Eigen::Index head) const;
  Head summarise(double sum, double square_sum, const SumErrorFactors& dot) const;
  void fill_weights(const Head& summary, Eigen::Index head);
  void finish_out(const MlaAttention& attention, Eigen::Index head, MlaError& error) const;
  void finish_mean(const MlaAttention& attention, const Head& summary, Eigen::Index head,
                   MlaError& error) const;
  double concentration(const KeyMatrix& keys, const MlaAttention& attention,
                       Eigen::Index head) const;
  void finish_lse(const MlaAttention& attention, const Head& summary, Eigen::Index head,
                  MlaError& error) const;
  void finish_max(const MlaAttention& attention, const Head& summary, Eigen::Index head,
                  MlaError& error) const;

  Numerics numerics_, sequential_;
  AttentionUnits units_;
  SoftmaxNoise noise_;
  bool exact_probability_ = false;  // p stays in fp32, so errors of the exponent dominate

  double largest_value_ = 0;  // largest norm of a value over the row's keys
  std::vector<Head> heads_;
  Eigen::MatrixXd squares_;      // [key dims, count]: k^2
  Eigen::MatrixXd dot_squares_;  // [count, heads]: sum_d (q_d k_d)^2
  Eigen::MatrixXf values_f32_;   // [512, count]
  Eigen::MatrixXf signed_sums_;  // [count, heads]: sum over d of sign(out_d) v_d
  Eigen::ArrayXXd coherent_;     // [512, heads]: SoftmaxNoise::coherent_variance, mostly 0
  Eigen::ArrayXd norms_;         // [count]: sum_d v^2
  // *_weights_: right-hand sides [count, 2 heads]. *_sums_: their products with the squares of v,
  // and with v.
  Eigen::MatrixXd square_weights_, square_sums_;
  Eigen::MatrixXd value_weights_, value_sums_;
};

// Sets row_mean_sigma of a tensor whose elements have independent errors.
void set_independent_row_means(Estimate& estimate);

}  // namespace plumb::reference
