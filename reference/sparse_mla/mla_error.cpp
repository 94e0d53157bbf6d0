// SPDX-License-Identifier: Apache-2.0
#include "reference/sparse_mla/mla_error.h"

#include <algorithm>
#include <cmath>

namespace plumb::reference {

namespace {

constexpr double kDim = static_cast<double>(kMlaDim);

// Half a last place of a sum S is between u|S| / 2 and u|S|. If many terms of one sign are added,
// the partial sums pass through all mantissas, and the mean square of half a last place is at most
// this fraction of (u|S|)^2.
constexpr double kMeanSquareOfMantissas = 0.61;
// Partial sums of terms in random order with a known total form a bridge. Its mean square is a
// third of that of the free walk that sum_error assumes. A kernel uses one order, and the mean
// square of one order exceeds twice the average in 1 of 10 cases and four times in 1 of 60. 2/3
// instead of 1/3 allows for this.
constexpr double kBridge = 2.0 / 3;

Numerics one_after_the_other(Numerics numerics) {
  numerics.chains = 1;
  return numerics;
}

void set_zero(Eigen::Index heads, MlaError& error) {
  error.sigma.setZero(kMlaDim, heads);
  error.worst.setZero(kMlaDim, heads);
  for (Eigen::ArrayXd* row :
       {&error.mean_sigma, &error.systematic, &error.mean_size, &error.concentration,
        &error.lse_sigma, &error.lse_worst, &error.lse_systematic, &error.max_sigma,
        &error.max_worst, &error.max_systematic}) {
    row->setZero(heads);
  }
}

}  // namespace

MlaErrorModel::MlaErrorModel(const Numerics& numerics)
    : numerics_(numerics),
      sequential_(one_after_the_other(numerics)),
      units_(attention_units(numerics)),
      noise_(units_),
      exact_probability_(units_.probability == 0) {}

void MlaErrorModel::estimate(const GatheredKeys& keys, double sm_scale,
                             const MlaAttention& attention, MlaError& error) {
  const Eigen::Index heads = attention.out.cols();
  set_zero(heads, error);
  if (keys.count == 0) return;
  const KeyMatrix k = key_matrix(keys);
  const auto v = value_matrix(k);
  squares_ = k.cwiseAbs2();
  const auto value_squares = squares_.topRows(kMlaDim);
  norms_ = value_squares.colwise().sum().transpose().array();
  dot_squares_.noalias() = squares_.transpose() * attention.queries.cwiseAbs2();
  // Cached values fit in fp32, and a variance needs no more precision.
  values_f32_ = v.cast<float>();
  signed_sums_.noalias() = values_f32_.transpose() * attention.out.cwiseSign().cast<float>();
  largest_value_ = std::sqrt(value_squares.maxCoeff());

  square_weights_.setZero(keys.count, 2 * heads);
  if (exact_probability_) value_weights_.setZero(keys.count, 2 * heads);
  coherent_.setZero(kMlaDim, heads);
  heads_.assign(static_cast<std::size_t>(heads), {});
  for (Eigen::Index head = 0; head < heads; ++head) {
    if (!std::isfinite(attention.lse[head])) continue;
    noise_.analyse(attention.scores.col(head).array(), attention.weights.col(head).array(),
                   attention.sum[head]);
    const SumErrorFactors dot = dot_factors(k, attention, head);
    noise_.set_exponent_errors(attention.scores.col(head).array(), dot_squares_.col(head).array(),
                               keys.dims, sm_scale, dot);
    Head summary = summarise(attention.sum[head], attention.weights.col(head).squaredNorm(), dot);
    summary.order = order_of_sums(k, attention, sm_scale, dot, head);
    heads_[head] = summary;
    fill_weights(summary, head);
    if (summary.softmax.coherence > 0) coherent_.col(head) = noise_.coherent_variance(v);
    finish_lse(attention, summary, head, error);
    finish_mean(attention, summary, head, error);
    error.concentration[head] = concentration(k, attention, head);
    finish_max(attention, summary, head, error);
  }
  square_sums_.noalias() = value_squares * square_weights_;
  if (exact_probability_) value_sums_.noalias() = v * value_weights_;
  for (Eigen::Index head = 0; head < heads; ++head) {
    if (heads_[head].finite) finish_out(attention, head, error);
  }
}

// The share of additions that round is nearly the same for all keys, so the largest share of the
// four keys with the largest weights is used.
SumErrorFactors MlaErrorModel::dot_factors(const KeyMatrix& keys, const MlaAttention& attention,
                                           Eigen::Index head) const {
  if (numerics_.unit != SumUnit::fp32) return matrix_dot_factors(keys, attention, head);
  if (numerics_.accumulator != Format::f32) return dot_error_factors(1, keys.rows(), numerics_);
  double share = 0;
  for (Eigen::Index rank = 0; rank < std::min<Eigen::Index>(4, keys.cols()); ++rank) {
    share = std::max(share, rounded_additions(attention.queries.col(head).data(),
                                              keys.col(noise_.ranked(rank)).data(), keys.rows()));
  }
  return dot_error_factors(share, keys.rows(), numerics_);
}

SumErrorFactors MlaErrorModel::matrix_dot_factors(const KeyMatrix& keys,
                                                  const MlaAttention& attention,
                                                  Eigen::Index head) const {
  MatrixTerms most{.rounding = 0, .cut = 0, .net = 0};
  for (Eigen::Index rank = 0; rank < std::min<Eigen::Index>(4, keys.cols()); ++rank) {
    const MatrixTerms terms =
        matrix_dot_terms(attention.queries.col(head).data(), keys.col(noise_.ranked(rank)).data(),
                         keys.rows(), numerics_);
    most.rounding = std::max(most.rounding, terms.rounding);
    most.cut = std::max(most.cut, terms.cut);
    most.net = std::max(most.net, terms.net);
  }
  return matrix_error_factors(keys.rows(), most, numerics_);
}

// Error factors of the sum of p v, which is added in the same unit as q.k. The values may all have
// one sign, which is the worst case.
SumErrorFactors MlaErrorModel::value_factors(std::int64_t added, double share_squares,
                                             const SumErrorFactors& adding) const {
  if (numerics_.unit == SumUnit::fp32) return adding;
  constexpr int kProductBits = 16;  // significand bits of a product of bf16 p and bf16 v
  const TermSums positive{.sum = 1, .magnitudes = 1, .squares = share_squares};
  return matrix_error_factors(added, matrix_terms(added, positive, kProductBits, sequential_),
                              sequential_);
}

// sigma of the error that all scores share. The loss of a truncated sum depends on the order of its
// terms, which is the same for all keys. So if the keys have a common component, their errors do
// too.
double MlaErrorModel::order_of_sums(const KeyMatrix& keys, const MlaAttention& attention,
                                    double sm_scale, const SumErrorFactors& dot,
                                    Eigen::Index head) const {
  if (numerics_.unit == SumUnit::fp32) return 0;
  const auto mean_key = keys * noise_.share().matrix();
  const double squares = attention.queries.col(head).cwiseProduct(mean_key).squaredNorm();
  return std::abs(sm_scale) * std::sqrt(dot.of_squares * squares);
}

// Errors of the reciprocal of the row sum and of the product with it.
double MlaErrorModel::normalising() const { return units_.function + 2 * units_.scalar; }

MlaErrorModel::Head MlaErrorModel::summarise(double sum, double square_sum,
                                             const SumErrorFactors& dot) const {
  Head head;
  head.finite = true;
  // Errors proportional to each score: sm_scale * log2(e) is rounded twice, and q.k may be
  // truncated.
  head.constant = 2 * units_.scalar + dot.bias;
  head.softmax = noise_.summary();
  head.adding = sum_error_factors(head.softmax.added, sequential_);
  head.adding.of_squares *= kBridge;
  if (square_sum < square(sum) / 16) head.adding.of_total *= kMeanSquareOfMantissas;
  head.values = value_factors(head.softmax.added, square_sum / square(sum), head.adding);
  // The terms of the row sum are positive, so what the sum loses (terms too small to change it)
  // adds up.
  head.row_sum = head.adding.of_squares * square_sum / square(sum) + head.adding.of_total +
                 kThird * square(units_.scalar) * head.softmax.row_sum_coherence +
                 square(head.softmax.lost_share);
  // The terms of an output have both signs, so their losses add up to at most lost_share, and
  // typically to the root of the sum of their squares.
  head.lost = std::min(head.softmax.lost_share / kSigmas,
                       std::sqrt(head.softmax.lost_share * units_.scalar)) *
              largest_value_;
  head.worst_lost = head.softmax.lost_share * largest_value_;
  head.worst_adding = head.adding.of_magnitudes + head.values.of_magnitudes +
                      units_.scalar * head.softmax.most_rescales;
  head.rescaling = kThird * square(units_.scalar) * head.softmax.rescales;
  head.flushed =
      static_cast<double>(noise_.share().size()) * kLeastNormalF32 / sum * largest_value_;
  return head;
}

void MlaErrorModel::fill_weights(const Head& summary, Eigen::Index head) {
  const Eigen::Index heads = std::ssize(heads_);
  square_weights_.col(head) = noise_.share();
  auto variance = square_weights_.col(heads + head).array();
  variance = summary.values.of_squares * noise_.share() * noise_.group_share();
  if (!exact_probability_) {
    variance += kThird * square(units_.probability) * noise_.rounded_share() * noise_.group_share();
    return;
  }
  auto exponent = value_weights_.col(head).array();
  exponent = square(summary.softmax.growth) * noise_.share() * noise_.group_share() *
             noise_.exponent_variance();
  variance += exponent;
  value_weights_.col(heads + head) = noise_.share() * noise_.centred_score();
}

// If p stays in fp32, the errors of the exponents are summed exactly. Otherwise the rounding of p
// is much larger, and the errors of the exponents are bounded with the variance of v over the
// softmax, which needs no extra matrix product.
void MlaErrorModel::finish_out(const MlaAttention& attention, Eigen::Index head,
                               MlaError& error) const {
  const Head& h = heads_[head];
  const Eigen::Index heads = std::ssize(heads_);
  const auto out = attention.out.col(head).array();
  const auto second_moment = square_sums_.col(head).array();
  const Eigen::ArrayXd spread = (second_moment - out.square()).max(0.0);
  const Eigen::ArrayXd size = out.abs();
  Eigen::ArrayXd variance = square_sums_.col(heads + head).array() + square(h.lost) +
                            (h.row_sum + h.values.of_total + h.rescaling) * size.square();
  Eigen::ArrayXd few = (normalising() + h.values.bias) * size + h.flushed;
  if (exact_probability_) {
    variance += square(h.softmax.growth) * h.softmax.exponent_variance * size.square() -
                2 * out * value_sums_.col(head).array();
    few += h.constant * h.softmax.growth * value_sums_.col(heads + head).array().abs();
  } else {
    variance += kThird * square(units_.probability) * coherent_.col(head) +
                square(h.softmax.growth) * h.softmax.largest_group_variance * spread;
    few += h.constant * h.softmax.growth * h.softmax.score_deviation * spread.sqrt();
  }
  error.sigma.col(head) = variance.max(0.0).sqrt() + few / kSigmas;
  // By Cauchy-Schwarz, sum share |v| <= sqrt(sum share v^2).
  error.worst.col(head) =
      (units_.probability * std::sqrt(h.softmax.rounded_share) + h.worst_adding) *
          second_moment.sqrt() +
      h.softmax.growth * h.softmax.worst_exponent * spread.sqrt() + h.worst_lost + few;
}

void MlaErrorModel::finish_mean(const MlaAttention& attention, const Head& h, Eigen::Index head,
                                MlaError& error) const {
  const auto out = attention.out.col(head).array();
  const Eigen::ArrayXd means = signed_sums_.col(head).array().cast<double>() / kDim;
  const Eigen::ArrayXd& share = noise_.share();
  const double size = out.abs().mean();
  const Eigen::ArrayXd centred = means - size;
  const double rounding = kThird * square(units_.probability) * noise_.rounding_variance(means);
  const double exponent =
      square(h.softmax.growth) *
      (share * noise_.group_share() * noise_.exponent_variance() * centred.square()).sum();
  const double common = (h.row_sum + kThird * square(normalising())) * square(size);
  // If v is nearly the same for all d, so are the errors of the additions, and their mean is as
  // large as each of them.
  const double adding = (h.values.of_squares * (share * noise_.group_share() * norms_).sum() +
                         (h.values.of_total + h.rescaling) * out.square().sum()) /
                            kDim +
                        square(h.lost);
  error.mean_sigma[head] = std::sqrt(rounding + exponent + common + adding);
  error.systematic[head] =
      h.constant * h.softmax.growth * std::abs((share * noise_.centred_score() * centred).sum()) +
      h.values.bias * size;
  if (numerics_.probability == Format::tf32_truncated) {
    error.systematic[head] += units_.probability * std::abs((noise_.rounded_share() * means).sum());
  }
  error.mean_size[head] = size;
}

// Estimate::row_concentration of a head. Rounding p of a candidate moves the output along the
// candidate's value; an error of its exponent moves the output along (value - output). That
// difference is computed for the four candidates with the largest weights only.
double MlaErrorModel::concentration(const KeyMatrix& keys, const MlaAttention& attention,
                                    Eigen::Index head) const {
  const Eigen::Index heads = std::ssize(heads_);
  Eigen::ArrayXd lengths = norms_;
  for (Eigen::Index rank = 0; exact_probability_ && rank < std::min<Eigen::Index>(4, keys.cols());
       ++rank) {
    const Eigen::Index i = noise_.ranked(rank);
    lengths[i] = (keys.col(i).head(kMlaDim) - attention.out.col(head)).squaredNorm();
  }
  return noise_.concentration(square_weights_.col(heads + head).array() * lengths);
}

void MlaErrorModel::finish_lse(const MlaAttention& attention, const Head& h, Eigen::Index head,
                               MlaError& error) const {
  const double systematic = h.constant * std::abs(h.softmax.mean_score) + h.order;
  const double few = systematic + units_.function * std::abs(std::log(attention.sum[head]));
  error.lse_sigma[head] = std::sqrt(square(h.softmax.growth) * h.softmax.exponent_variance +
                                    h.row_sum + square(h.order)) +
                          few / kSigmas;
  error.lse_worst[head] =
      h.softmax.growth * h.softmax.worst_exponent + h.worst_adding + h.softmax.lost_share + few;
  error.lse_systematic[head] = systematic;
}

// Errors of the maximum of many scores with independent errors. A candidate that is behind by a gap
// becomes the maximum only if its error exceeds the gap, so only the excess counts. If several
// candidates are nearly first, the maximum is too large on average: candidate i adds at most E
// max(0, s Z - gap), where s^2 is the variance of its distance from the first. All together add no
// more than the expected maximum of n normal numbers.
void MlaErrorModel::finish_max(const MlaAttention& attention, const Head& h, Eigen::Index head,
                               MlaError& error) const {
  constexpr double kDensity = 0.39894228040143268;  // density of a normal number at its mean
  const auto scores = attention.scores.col(head).array();
  const Eigen::ArrayXd gaps = attention.max[head] - scores;
  const Eigen::ArrayXd sigmas = noise_.score_variance().sqrt();
  const double first = sigmas[noise_.ranked(0)];
  const Eigen::ArrayXd apart =
      (noise_.score_variance() + square(first)).sqrt().max(kLeastNormalF32);
  const Eigen::ArrayXd lifts = apart * (-0.5 * (gaps / apart).square()).exp();
  const double lift = kDensity * (lifts.sum() - lifts[noise_.ranked(0)]);
  const double most_lift =
      sigmas.maxCoeff() * std::sqrt(2 * std::log(static_cast<double>(scores.size())));
  const double systematic = h.constant * std::abs(attention.max[head]);
  error.max_sigma[head] = (sigmas - gaps / kSigmas).maxCoeff() + systematic / kSigmas;
  error.max_worst[head] = (noise_.worst_score() - gaps).maxCoeff();
  error.max_systematic[head] = systematic + std::min(lift, most_lift);
}

void set_independent_row_means(Estimate& estimate) {
  for (std::int64_t row = 0; row < estimate.rows; ++row) {
    const Eigen::Map<const Eigen::ArrayXd> sigma(estimate.sigma.data() + row * estimate.columns,
                                                 estimate.columns);
    estimate.row_mean_sigma[row] =
        std::sqrt(sigma.square().sum()) / static_cast<double>(estimate.columns);
  }
}

}  // namespace plumb::reference
