// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/sinkhorn.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "reference/hyper_connection/hyper_connection.h"

namespace plumb::reference {

namespace {

constexpr int kSide = 4;
// Sum of the squared partial sums of four positive terms and eps, relative to the squared total.
// The partial sums are about 1/2, 3/4, 1 and 1 of the total.
constexpr double kSumRoundings = 0.25 + 0.5625 + 1 + 1;
constexpr double kWorstSumRoundings = 4;

enum class MatrixAxis { row, column };

int entry(MatrixAxis axis, int line, int i) {
  return axis == MatrixAxis::row ? kSide * line + i : kSide * i + line;
}

struct Iterate {
  Matrix4 value{};
  Covariance16 covariance{};
  // Largest errors of log K (including the roundings of all steps so far), log a and log b.
  double kernel = 0, rows = 0, columns = 0;
};

// A normalisation subtracts from the logarithms of a line (a row or column of the 4 x 4 matrix)
// their mean with these weights. This function propagates the covariance: it does the same for each
// column of the covariance, then for each of its rows.
void subtract_means(Covariance16& covariance, const Matrix4& weights, MatrixAxis axis) {
  for (int line = 0; line < kSide; ++line) {
    std::array<double, kCombEntries> means{};
    for (int i = 0; i < kSide; ++i) {
      const int e = entry(axis, line, i);
      for (int c = 0; c < kCombEntries; ++c) means[c] += weights[e] * covariance[e][c];
    }
    for (int i = 0; i < kSide; ++i) {
      std::array<double, kCombEntries>& row = covariance[entry(axis, line, i)];
      for (int c = 0; c < kCombEntries; ++c) row[c] -= means[c];
    }
  }
  for (std::array<double, kCombEntries>& row : covariance) {
    for (int line = 0; line < kSide; ++line) {
      double mean = 0;
      for (int i = 0; i < kSide; ++i) {
        const int e = entry(axis, line, i);
        mean += weights[e] * row[e];
      }
      for (int i = 0; i < kSide; ++i) row[entry(axis, line, i)] -= mean;
    }
  }
}

void add_line_variance(Covariance16& covariance, MatrixAxis axis, double variance) {
  for (int line = 0; line < kSide; ++line) {
    for (int i = 0; i < kSide; ++i) {
      for (int j = 0; j < kSide; ++j) {
        covariance[entry(axis, line, i)][entry(axis, line, j)] += variance;
      }
    }
  }
}

void add_variance(Covariance16& covariance, double variance) {
  for (int e = 0; e < kCombEntries; ++e) covariance[e][e] += variance;
}

// Divides each row, or each column, by (its sum + eps).
void normalise(Iterate& x, MatrixAxis axis, double eps, const Numerics& numerics) {
  const double u = unit_roundoff(numerics.accumulator);
  const double division = function_error(numerics);
  for (int line = 0; line < kSide; ++line) {
    double sum = eps;
    for (int i = 0; i < kSide; ++i) sum += x.value[entry(axis, line, i)];
    for (int i = 0; i < kSide; ++i) x.value[entry(axis, line, i)] /= sum;
  }
  // The quotients are the weights of the means: each is its entry's share of (sum + eps).
  subtract_means(x.covariance, x.value, axis);
  add_line_variance(x.covariance, axis, kSumRoundings * rounding_variance(u));
  add_variance(x.covariance, rounding_variance(division));

  double& scaled = axis == MatrixAxis::row ? x.rows : x.columns;
  const double other = axis == MatrixAxis::row ? x.columns : x.rows;
  scaled = std::max(x.kernel + other, scaled) + kWorstSumRoundings * u;
  x.kernel += division;
}

// exp(logit - row maximum). The difference, its product with log2(e), the constant log2(e) and exp2
// have errors.
void exponentiate(Iterate& x, const Matrix4& logits, const Numerics& numerics) {
  const double u = unit_roundoff(numerics.accumulator);
  const double function = function_error(numerics);
  double most = 0;
  for (int e = 0; e < kCombEntries; ++e) {
    const double* row = &logits[e / kSide * kSide];
    const double exponent = logits[e] - *std::max_element(row, row + kSide);
    x.value[e] = std::exp(exponent);
    x.covariance[e][e] += 3 * rounding_variance(u * exponent) + rounding_variance(function);
    most = std::max(most, 3 * u * std::abs(exponent));
  }
  x.kernel += most + function;
}

// Adds eps to each entry. The error of an entry far below eps becomes negligible, even if the entry
// was flushed to zero.
void add_eps(Iterate& x, double eps, const Numerics& numerics) {
  const double u = unit_roundoff(numerics.accumulator);
  const double log_error = x.kernel + x.rows + x.columns;
  Matrix4 share{};
  double most = 0;
  for (int e = 0; e < kCombEntries; ++e) {
    const double sum = x.value[e] + eps;
    const double flushed = kLeastNormalF32 / sum;
    share[e] = x.value[e] / sum;
    x.value[e] = sum;
    most = std::max(most, std::log1p(share[e] * std::expm1(log_error) + flushed));
  }
  for (int i = 0; i < kCombEntries; ++i) {
    for (int j = 0; j < kCombEntries; ++j) x.covariance[i][j] *= share[i] * share[j];
    const double flushed = kLeastNormalF32 / x.value[i];
    x.covariance[i][i] += rounding_variance(u) + flushed * flushed;
  }
  x.kernel = most + u;
  x.rows = x.columns = 0;
}

}  // namespace

SinkhornResult sinkhorn(const Matrix4& logits, const Covariance16& log_covariance, double worst,
                        int iterations, double eps, const Numerics& numerics) {
  Iterate x;
  x.covariance = log_covariance;
  x.kernel = worst;
  exponentiate(x, logits, numerics);
  normalise(x, MatrixAxis::row, 0, numerics);
  add_eps(x, eps, numerics);
  normalise(x, MatrixAxis::column, eps, numerics);
  for (int i = 1; i < iterations; ++i) {
    normalise(x, MatrixAxis::row, eps, numerics);
    normalise(x, MatrixAxis::column, eps, numerics);
  }
  return {x.value, x.covariance, x.kernel + x.rows + x.columns};
}

}  // namespace plumb::reference
