// SPDX-License-Identifier: Apache-2.0
//
// Error model. A product of two fp8 values has eight bits and is exact in fp32. A sum of such
// products is exact while no partial sum is too large for the last place of a product, so for many
// keys nothing is rounded before the weights. max(0, s) has at most the error of s. Each head's w *
// s rounds once, or twice if the scale is multiplied in before the weight. Then the additions over
// heads round. The last product with the scale is the rounding of the output. A matrix unit with
// few bits truncates nearly every dot product, so the whole logit becomes smaller. Keys that are
// multiplied by their scales before the dot product are rounded, and so are all of their products
// and additions, unless the scales are powers of two.
#include "reference/indexer/mqa_logits.h"

#include <algorithm>
#include <cmath>

#include "reference/dot_error.h"
#include "reference/eigen_setup.h"
#include "reference/matrix_error.h"
#include "reference/rounding.h"

namespace plumb::reference {

namespace {

// The rounding errors of one query row's dot products.
class DotErrors {
 public:
  DotErrors(const Fp8Vectors& queries, const Fp8Vectors& keys, const Numerics& numerics)
      : queries_(queries),
        keys_(keys),
        one_chain_(numerics),
        unit_(unit_roundoff(numerics.accumulator)) {
    one_chain_.chains = 1;  // one chain: the order of a sum with the largest error
    factors_ = sum_error_factors(queries.values.rows(), one_chain_);
    scaled_key_ = scaled_operand_error(numerics.product);
    product_error_ = numerics.product == Format::f32 ? kUnitF32 : 0;
  }

  // Error of the dot product q[head] . k[key] = score. `squares`: sum of the squares of its terms.
  MatrixError of(Eigen::Index head, Eigen::Index key, double score, double squares) const {
    if (one_chain_.unit != SumUnit::fp32) return of_unit(head, key, score, squares);
    // By the Cauchy-Schwarz inequality, `magnitudes` is at least sum |q k|, so no partial sum is
    // larger.
    const double magnitudes = queries_.norm[head] * keys_.norm[key];
    if (magnitudes * unit_ <= queries_.finest[head] * keys_.finest[key]) return {};
    const double size = std::max(std::abs(score), std::sqrt(squares));
    const double variance = rounded_share(head, key, size) *
                            (factors_.of_squares * squares + factors_.of_total * square(score));
    return {std::sqrt(variance), 0, factors_.of_magnitudes * magnitudes};
  }

  // Error of the dot product with a key that was multiplied by its scale. It leaves out the
  // roundings of the key itself, which all heads share: see squared_effects_of_key.
  MatrixError of_scaled(Eigen::Index head, Eigen::Index key, double score, double squares) const {
    const double magnitudes = queries_.norm[head] * keys_.norm[key];
    MatrixError error;
    if (one_chain_.unit == SumUnit::fp32) {
      const double variance = factors_.of_squares * squares + factors_.of_total * square(score) +
                              square(kUniformSigma * product_error_) * squares;
      error = {std::sqrt(variance), 0, (factors_.of_magnitudes + product_error_) * magnitudes};
    } else {
      const int bits = 24;  // upper limit for the significand of a product
      error =
          matrix_sum_error(queries_.values.rows(), {score, magnitudes, squares}, bits, one_chain_);
    }
    error.bias += scaled_key_.bias * std::abs(score);
    error.worst += scaled_key_.worst * magnitudes;
    return error;
  }

  double scaled_key_sigma() const { return scaled_key_.sigma; }

 private:
  MatrixError of_unit(Eigen::Index head, Eigen::Index key, double score, double squares) const {
    constexpr int kProductBits = 8;
    const double most = queries_.norm[head] * keys_.norm[key];
    const MatrixUnit unit = matrix_unit(one_chain_);
    const double place = std::ldexp(1.0, -std::min(unit.kept, unit.bits - 1));
    if (most * place <= queries_.finest[head] * keys_.finest[key]) return {};
    const std::int64_t dim = queries_.values.rows();
    // Mean magnitude of products of normal numbers, as a fraction of their root mean square.
    constexpr double kMeanMagnitude = 0.64;
    const double magnitudes =
        std::max(std::abs(score), kMeanMagnitude * std::sqrt(static_cast<double>(dim) * squares));
    MatrixError error =
        matrix_sum_error(dim, {score, magnitudes, squares}, kProductBits, one_chain_);
    error.worst *= std::max(1.0, most / magnitudes);
    return error;
  }

  // Share of the additions that round: those of a product with bits below the last place of a sum
  // of this size. The lowest bits of q and of k are treated as independent. Factor 2: such a
  // product may leave the sum with a bit that is rounded away when the sum reaches the next binade.
  // One addition always counts as rounding, because for rare roundings 6 sigma would be less than a
  // single one.
  double rounded_share(Eigen::Index head, Eigen::Index key, double size) const {
    constexpr int kLeast = Fp8Vectors::kLeastPlace, kPlaces = Fp8Vectors::kPlaces;
    double share = 0;
    // A sum of zeros does not round.
    const bool rounds = size > 0;
    const int last_place = rounds ? std::ilogb(2 * unit_) + std::ilogb(size) : 0;
    for (int p = 0; rounds && p < kPlaces; ++p) {
      const int limit = std::clamp(last_place - (kLeast + p) - kLeast, 0, kPlaces);
      share += queries_.places(p, head) * keys_.below(limit, key);
    }
    return std::min(1.0, 1 / static_cast<double>(queries_.values.rows()) + 2 * share);
  }

  const Fp8Vectors& queries_;
  const Fp8Vectors& keys_;
  Numerics one_chain_;
  double unit_;
  SumErrorFactors factors_;
  OperandError scaled_key_;
  double product_error_;
};

// The terms w * max(0, s) of one key, summed over heads.
struct HeadSum {
  std::int64_t heads = 0, terms = 0;  // terms: number of terms that are not zero
  double sum = 0, magnitudes = 0, squares = 0;
  double dot_variance = 0, dot_worst = 0;  // from the errors of the dot products
  double dot_bias = 0;                     // from the bias towards zero of each dot product

  void add(double weight, double score, const MatrixError& error) {
    ++heads;
    if (!(score + error.worst > 0)) return;
    dot_variance += square(weight * error.sigma);
    dot_worst += std::abs(weight) * error.worst;
    dot_bias += weight * error.bias;
    const double term = weight * std::max(score, 0.0);
    terms += term != 0;
    sum += term;
    magnitudes += std::abs(term);
    squares += square(term);
  }

  SumError error(const Numerics& numerics) const {
    Numerics fp32 = numerics;
    fp32.accumulator = Format::f32;
    constexpr double kProducts = 2;
    const double product = kUnitF32 * kUniformSigma;
    const double additions = sum_error(terms, sum, magnitudes, squares, fp32).sigma;
    SumError error;
    error.sigma =
        std::sqrt(dot_variance + kProducts * square(product) * squares + square(additions)) +
        std::abs(dot_bias) / 6;
    // A head with a zero term adds no rounding, but the other terms may all be in one chain. So the
    // worst case counts all heads.
    error.worst = dot_worst + kProducts * kUnitF32 * magnitudes +
                  sum_error(heads, sum, magnitudes, squares, fp32).worst;
    return error;
  }
};

// Let e_d be the change of the sum over heads if dimension d of the key changes by its own size.
// Returns the sum of e_d^2. Roundings of the key affect all heads together.
double squared_effects_of_key(const Fp8Vectors& queries, const float* weights,
                              const Fp8Vectors& keys, Eigen::Index key,
                              const Eigen::Ref<const Eigen::VectorXd>& scores) {
  Eigen::VectorXd open(scores.size());
  for (Eigen::Index head = 0; head < scores.size(); ++head) {
    open[head] = scores[head] > 0 ? weights[head] : 0;
  }
  return (queries.values * open).cwiseProduct(keys.values.col(key)).squaredNorm();
}

}  // namespace

Fp8Vectors::Fp8Vectors(std::int64_t dim, std::int64_t count)
    : values(dim, count),
      squares(dim, count),
      norm(count),
      finest(count),
      places(kPlaces, count),
      below(kPlaces + 1, count) {}

void Fp8Vectors::decode(std::int64_t i, const std::uint8_t* codes, Dialect dialect) {
  const double share = 1 / static_cast<double>(values.rows());
  double sum = 0;
  int lowest = lowest_bit(0);
  places.col(i).setZero();
  for (Eigen::Index d = 0; d < values.rows(); ++d) {
    const double x = decode_e4m3(codes[d], dialect);
    values(d, i) = x;
    squares(d, i) = static_cast<float>(x * x);
    sum += x * x;
    if (!(std::abs(x) > 0)) continue;
    places(lowest_bit(x) - kLeastPlace, i) += share;
    lowest = std::min(lowest, lowest_bit(x));
  }
  norm[i] = std::sqrt(sum);
  finest[i] = std::ldexp(1.0, lowest);
  below(0, i) = 0;
  for (int p = 0; p < kPlaces; ++p) below(p + 1, i) = below(p, i) + places(p, i);
}

void score_keys(const Fp8Vectors& queries, const float* weights, const IndexerKeys& keys,
                const KeyRange& range, const Numerics& numerics, std::int64_t row,
                std::int64_t column, Estimate& estimate) {
  if (range.count <= 0) return;
  fix_eigen_blocking();
  const DotErrors dots(queries, keys.vectors, numerics);
  const Eigen::MatrixXd scores =
      queries.values.transpose() * keys.vectors.values.middleCols(range.first, range.count);
  const Eigen::MatrixXf squares =
      queries.squares.transpose() * keys.vectors.squares.middleCols(range.first, range.count);
  double variance = 0, systematic = 0;
  for (Eigen::Index i = 0; i < range.count; ++i) {
    const Eigen::Index key = range.first + i;
    const double scale = keys.scales[static_cast<std::size_t>(key)];
    const bool scaled = keys.scaled && !is_power_of_two(scale);
    HeadSum sum;
    for (Eigen::Index head = 0; head < scores.rows(); ++head) {
      const double score = scores(head, i);
      sum.add(weights[head], score,
              scaled ? dots.of_scaled(head, key, score, squares(head, i))
                     : dots.of(head, key, score, squares(head, i)));
    }
    if (scaled) {
      sum.dot_variance +=
          square(dots.scaled_key_sigma()) *
          squared_effects_of_key(queries, weights, keys.vectors, key, scores.col(i));
    }
    const SumError error = sum.error(numerics);
    const std::int64_t at = row * estimate.columns + column + i;
    estimate.value[at] = scale * sum.sum;
    estimate.sigma[at] = scale * error.sigma;
    estimate.worst[at] = scale * error.worst;
    variance += square(estimate.sigma[at]);
    systematic += scale * std::abs(sum.dot_bias);
  }
  // Errors of different keys are independent.
  estimate.row_mean_sigma[row] = std::sqrt(variance) / static_cast<double>(estimate.columns);
  estimate.row_systematic[row] = systematic / static_cast<double>(estimate.columns);
}

Estimate empty_logits(std::int64_t rows, std::int64_t columns) {
  Estimate estimate;
  estimate.resize(rows, columns);
  estimate.output = Format::f32;
  return estimate;
}

}  // namespace plumb::reference
