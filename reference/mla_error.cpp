// SPDX-License-Identifier: Apache-2.0
#include "reference/mla_error.h"

#include <algorithm>
#include <cmath>

namespace plumb::reference {

namespace {

constexpr double kThird = 1.0 / 3;
constexpr double kLeastNormalF32 = 0x1p-126;
constexpr double kDim = static_cast<double>(kMlaDim);

double square(double x) { return x * x; }

Numerics one_after_the_other(Numerics numerics) {
  numerics.chains = 1;
  return numerics;
}

void set_zero(Eigen::Index heads, MlaError& error) {
  error.sigma.setZero(kMlaDim, heads);
  error.worst.setZero(kMlaDim, heads);
  for (Eigen::ArrayXd* row : {&error.mean_sigma, &error.systematic, &error.mean_size,
                              &error.lse_sigma, &error.lse_worst, &error.lse_systematic}) {
    row->setZero(heads);
  }
}

}  // namespace

MlaErrorModel::MlaErrorModel(const Numerics& numerics)
    : numerics_(numerics),
      sequential_(one_after_the_other(numerics)),
      units_(attention_units(numerics)),
      noise_(numerics),
      exact_probability_(units_.probability == 0) {}

void MlaErrorModel::estimate(const GatheredKeys& keys, double sm_scale,
                             const MlaAttention& attention, MlaError& error) {
  const Eigen::Index heads = attention.out.cols();
  set_zero(heads, error);
  if (keys.count == 0) return;
  const KeyMatrix k = key_matrix(keys);
  squares_ = k.cwiseAbs2();
  norms_ = squares_.colwise().sum().transpose().array();
  dot_squares_.noalias() = squares_.transpose() * attention.queries.cwiseAbs2();
  means_.noalias() = k.transpose() * (attention.out.cwiseSign() / kDim);
  candidates_ = sum_error_factors(keys.count, sequential_);
  flushed_ = static_cast<double>(keys.count) * kLeastNormalF32 * std::sqrt(squares_.maxCoeff());

  square_weights_.setZero(keys.count, 2 * heads);
  if (exact_probability_) key_weights_.setZero(keys.count, 2 * heads);
  heads_.assign(static_cast<std::size_t>(heads), {});
  for (Eigen::Index head = 0; head < heads; ++head) {
    if (!std::isfinite(attention.lse[head])) continue;
    noise_.analyse(attention.scores.col(head).array(), attention.weights.col(head).array(),
                   attention.sum[head], dot_squares_.col(head).array(), sm_scale);
    const Head summary = summarise(attention.sum[head], attention.weights.col(head).squaredNorm());
    heads_[head] = summary;
    fill_weights(summary, head);
    finish_lse(attention, summary, head, error);
    finish_mean(attention, summary, head, error);
  }
  square_sums_.noalias() = squares_ * square_weights_;
  if (exact_probability_) key_sums_.noalias() = k * key_weights_;
  for (Eigen::Index head = 0; head < heads; ++head) {
    if (heads_[head].finite) finish_out(attention, head, error);
  }
}

// Errors that a row or an element has in proportion to its value: the row sum, its reciprocal and
// the product with it are common to a row; rescaling and adding up are each element's own.
MlaErrorModel::Head MlaErrorModel::summarise(double sum, double square_sum) const {
  const double u = units_.scalar, f = units_.function;
  Head head;
  head.finite = true;
  head.growth = noise_.growth;
  head.coherence = noise_.coherence;
  head.rounded_share = noise_.rounded_share().sum();
  head.score_deviation = noise_.score_deviation;
  head.exponent_variance = noise_.lse_variance;
  head.largest_group_variance = noise_.largest_group_variance;
  head.worst_exponent = std::sqrt(noise_.worst_square);
  const double row_sum = candidates_.of_squares * square_sum / square(sum) + candidates_.of_total;
  head.common = row_sum + square(noise_.lost_share) + kThird * square(f);
  head.separate = candidates_.of_total + kThird * square(u) * (1 + noise_.rescales());
  head.common_worst = candidates_.of_magnitudes + f + u * (1 + noise_.most_rescales());
  return head;
}

void MlaErrorModel::fill_weights(const Head& summary, Eigen::Index head) {
  const Eigen::Index heads = std::ssize(heads_);
  square_weights_.col(head) = noise_.share();
  auto variance = square_weights_.col(heads + head).array();
  variance = candidates_.of_squares * noise_.share().square();
  if (!exact_probability_) {
    variance += kThird * square(units_.probability) * noise_.rounded_share() * noise_.group_share();
    return;
  }
  auto exponent = key_weights_.col(head).array();
  exponent =
      square(summary.growth) * noise_.share() * noise_.group_share() * noise_.exponent_variance();
  variance += exponent;
  key_weights_.col(heads + head) = noise_.share() * noise_.centred_score();
}

// With p in fp32 the errors of the exponents are summed exactly. Otherwise rounding p drowns them,
// and they are bounded by way of the variance of v over the softmax, which costs no product.
void MlaErrorModel::finish_out(const MlaAttention& attention, Eigen::Index head,
                               MlaError& error) const {
  const Head& h = heads_[head];
  const Eigen::Index heads = std::ssize(heads_);
  const auto out = attention.out.col(head).array();
  const auto second_moment = square_sums_.col(head).array();
  const Eigen::ArrayXd spread = (second_moment - out.square()).max(0.0);
  // The constant sm_scale * log2(e) is rounded twice: a relative error common to all scores.
  const double constant = kThird * square(2 * units_.scalar * h.growth);
  Eigen::ArrayXd variance =
      square_sums_.col(heads + head).array() + (h.common + h.separate) * out.square();
  if (exact_probability_) {
    variance += square(h.growth) * h.exponent_variance * out.square() -
                2 * out * key_sums_.col(head).array() +
                constant * key_sums_.col(heads + head).array().square();
  } else {
    variance +=
        kThird * square(units_.probability) * h.coherence * out.square() +
        (square(h.growth) * h.largest_group_variance + constant * square(h.score_deviation)) *
            spread;
  }
  const double flushed = flushed_ / attention.sum[head];
  error.sigma.col(head) = variance.max(0.0).sqrt() + flushed;
  const double of_magnitudes =
      units_.probability * std::sqrt(h.rounded_share) + candidates_.of_magnitudes;
  // By Cauchy, sum share |v| <= sqrt(sum share v^2).
  error.worst.col(head) = of_magnitudes * second_moment.sqrt() +
                          h.growth * h.worst_exponent * spread.sqrt() + h.common_worst * out.abs() +
                          flushed;
}

void MlaErrorModel::finish_mean(const MlaAttention& attention, const Head& h, Eigen::Index head,
                                MlaError& error) const {
  const auto out = attention.out.col(head).array();
  const auto means = means_.col(head).array();
  const double size = out.abs().mean();
  const Eigen::ArrayXd centred = means - size;
  const double rounding = kThird * square(units_.probability) * noise_.rounding_variance(means);
  const double exponent =
      square(h.growth) *
      (noise_.share() * noise_.group_share() * noise_.exponent_variance() * centred.square()).sum();
  const double adding =
      candidates_.of_squares * (noise_.share().square() * norms_).sum() / square(kDim);
  error.mean_sigma[head] = std::sqrt(rounding + exponent + adding + h.common * square(size) +
                                     h.separate * out.square().sum() / square(kDim));
  error.systematic[head] = 2 * units_.scalar * h.growth *
                           std::abs((noise_.share() * noise_.centred_score() * centred).sum());
  if (numerics_.probability == Format::tf32_truncated) {
    error.systematic[head] += units_.probability * std::abs((noise_.rounded_share() * means).sum());
  }
  error.mean_size[head] = size;
}

// lse = ln L + max, by way of base 2: the constants of the changes of base are rounded once for
// all.
void MlaErrorModel::finish_lse(const MlaAttention& attention, const Head& h, Eigen::Index head,
                               MlaError& error) const {
  const double u = units_.scalar, f = units_.function;
  const double lse = attention.lse[head], max = attention.max[head];
  const double log_sum = std::log(attention.sum[head]);
  const double mean_score = std::abs(noise_.mean_score);
  const double bases = u * (2 * mean_score + std::abs(lse));
  error.lse_sigma[head] = std::sqrt(
      square(h.growth) * h.exponent_variance + (h.common - kThird * square(f)) +
      kThird * (square(bases) + square(u) * (square(max) + square(lse)) + square(f * log_sum)));
  error.lse_worst[head] = h.growth * h.worst_exponent + h.common_worst + bases +
                          u * (std::abs(max) + std::abs(lse)) + f * std::abs(log_sum);
  error.lse_systematic[head] = bases;
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
