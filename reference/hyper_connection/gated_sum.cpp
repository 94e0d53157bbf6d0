// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/gated_sum.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>

#include "reference/formats/bfloat16.h"
#include "reference/rounding.h"

namespace plumb::reference {

namespace {

using Vector4 = std::array<double, kStreams>;
using Columns = Eigen::Array4d;  // four columns side by side

// The unrounded sum y of one token. Its errors: those of the gates, which all columns share, and
// the roundings of four products and three additions, which are each column's own.
struct GatedSum {
  std::vector<double> value, shifted, own_variance, worst;
};

Vector4 column_of(const std::vector<double>& x, std::int64_t hidden, std::int64_t h) {
  return {x[h], x[hidden + h], x[2 * hidden + h], x[3 * hidden + h]};
}

double variance_of(const Gates& gates, const Vector4& x) {
  double variance = 0;
  for (int i = 0; i < kStreams; ++i) {
    for (int j = 0; j < kStreams; ++j) variance += gates.covariance[i][j] * x[i] * x[j];
  }
  return variance;
}

double sign(double x) { return x < 0 ? -1 : 1; }

// Calls body(h, load, store) for four columns from h on: load(p) reads p[h ..], store(p, v) writes
// them. What lies behind the last column reads as 0 and is not written.
void for_each_four(std::int64_t columns, const auto& body) {
  std::int64_t h = 0;
  for (; h + 4 <= columns; h += 4) {
    body([h](const double* p) { return Columns(Eigen::Map<const Columns>(p + h)); },
         [h](double* p, const Columns& v) { Eigen::Map<Columns>(p + h) = v; });
  }
  if (h == columns) return;
  const std::int64_t rest = columns - h;
  body(
      [h, rest](const double* p) {
        Columns some = Columns::Zero();
        for (std::int64_t i = 0; i < rest; ++i) some[i] = p[h + i];
        return some;
      },
      [h, rest](double* p, const Columns& v) {
        for (std::int64_t i = 0; i < rest; ++i) p[h + i] = v[i];
      });
}

GatedSum sum_streams(const std::vector<double>& x, const Gates& gates, std::int64_t hidden) {
  const auto size = static_cast<std::size_t>(hidden);
  GatedSum y{std::vector<double>(size), std::vector<double>(size), std::vector<double>(size),
             std::vector<double>(size)};
  for_each_four(hidden, [&](const auto& load, const auto& store) {
    Columns sum = Columns::Zero(), shift = Columns::Zero(), squares = Columns::Zero(),
            magnitudes = Columns::Zero(), from_gates = Columns::Zero();
    for (int j = 0; j < kStreams; ++j) {
      const Columns column = load(x.data() + j * hidden);
      const Columns product = column * gates.value[j];
      sum += product;
      shift += column * gates.shift[j];
      squares += product * product;
      magnitudes += product.abs();
      from_gates += column.abs() * gates.worst[j];
      if (j == 0) continue;  // taking up the first rounds nothing more
      squares += sum * sum;
      magnitudes += sum.abs();
    }
    store(y.value.data(), sum);
    store(y.shifted.data(), sum + shift);
    store(y.own_variance.data(), squares * rounding_variance(kUnitF32));
    // Roundings act on numbers that are themselves slightly off, hence the factor.
    store(y.worst.data(),
          (from_gates + magnitudes * kUnitF32) * (1 + 8 * kUnitF32) + shift.abs() * (4 * kUnitF32));
  });
  return y;
}

// Mean over the row of sign(value) * error, from what is added up per column.
class RowMean {
 public:
  void add(double value, const Vector4& gate_gain, double own_variance) {
    for (int j = 0; j < kStreams; ++j) gain_[j] += sign(value) * gate_gain[j];
    own_variance_ += own_variance;
  }
  void write(const Gates& gates, double shared_variance, double systematic, std::int64_t row,
             Estimate& out) const {
    const auto n = static_cast<double>(out.columns);
    out.row_mean_sigma[row] =
        std::sqrt((variance_of(gates, gain_) + own_variance_) / (n * n) + shared_variance);
    double from_gates = 0;
    for (int j = 0; j < kStreams; ++j) from_gates += std::abs(gain_[j]) * gates.systematic[j];
    out.row_systematic[row] = from_gates / n + systematic;
  }

 private:
  Vector4 gain_{};  // of each gate's error on the sum over the row
  double own_variance_ = 0;
};

// The same as variance_of, of four columns at once.
Columns variances_of(const Gates& gates, const Columns* column) {
  Columns variance = Columns::Zero();
  for (int i = 0; i < kStreams; ++i) {
    Columns row = column[i] * gates.covariance[i][i];
    for (int j = i + 1; j < kStreams; ++j) {
      row += column[j] * (gates.covariance[i][j] + gates.covariance[j][i]);
    }
    variance += column[i] * row;
  }
  return variance;
}

void write_sum(const std::vector<double>& x, const GatedSum& y, const Gates& gates,
               std::int64_t row, Estimate& out) {
  const std::int64_t first = row * out.columns;
  for_each_four(out.columns, [&](const auto& load, const auto& store) {
    Columns column[kStreams];
    for (int j = 0; j < kStreams; ++j) column[j] = load(x.data() + j * out.columns);
    const Columns variance = variances_of(gates, column) + load(y.own_variance.data());
    store(out.sigma.data() + first, variance.max(0).sqrt());
  });
  std::copy(y.value.begin(), y.value.end(), out.value.begin() + first);
  std::copy(y.worst.begin(), y.worst.end(), out.worst.begin() + first);
  RowMean mean;
  for (std::int64_t h = 0; h < out.columns; ++h) {
    if (!out.shift.empty()) out.shift[first + h] = y.shifted[h] - y.value[h];
    mean.add(y.value[h], column_of(x, out.columns, h), y.own_variance[h]);
  }
  mean.write(gates, 0, 0, row, out);
}

Uncertain mean_square_sum(const GatedSum& y, const Numerics& numerics) {
  double sum = 0, fourth = 0, own = 0, worst = 0;
  for (std::size_t h = 0; h < y.value.size(); ++h) {
    const double square = y.value[h] * y.value[h];
    sum += square;
    fourth += square * square;
    own += 4 * square * y.own_variance[h];
    worst += (2 * std::abs(y.shifted[h]) + y.worst[h]) * y.worst[h];
  }
  const auto terms = static_cast<std::int64_t>(y.value.size());
  const SumError added = sum_error(terms, sum, sum, fourth, numerics);
  return {sum, added.sigma * added.sigma + rounding_variance(kUnitF32) * fourth + own,
          added.worst + kUnitF32 * sum + worst, 0, 0};
}

// The sum over y with what its norm multiplies it by, and how a gate's error moves the mean square.
struct Normalisation {
  Uncertain r;
  double shifted_r = 0;  // of y with the predictable errors in it
  Vector4 projection{};  // mean of y x_j
};

Normalisation normalisation(const std::vector<double>& x, const GatedSum& y, double eps,
                            const Numerics& numerics) {
  const auto hidden = static_cast<std::int64_t>(y.value.size());
  const auto n = static_cast<double>(hidden);
  Normalisation norm;
  double shifted_sum = 0;
  for (std::int64_t h = 0; h < hidden; ++h) {
    const Vector4 column = column_of(x, hidden, h);
    for (int j = 0; j < kStreams; ++j) norm.projection[j] += y.value[h] * column[j] / n;
    shifted_sum += y.shifted[h] * y.shifted[h];
  }
  norm.r = rms_scale(mean_square_sum(y, numerics), hidden, eps, numerics);
  norm.shifted_r = 1 / std::sqrt(shifted_sum / n + eps);
  return norm;
}

// How each gate's error moves a normalised column: directly, less what the mean square takes back.
Vector4 normalised_gain(const Normalisation& norm, double gain, double y, const Vector4& column) {
  Vector4 gate_gain{};
  for (int j = 0; j < kStreams; ++j) {
    gate_gain[j] = gain * (column[j] - y * norm.projection[j] * norm.r.value * norm.r.value);
  }
  return gate_gain;
}

// An error of y may carry it over to the other bf16 neighbour than the predicted one.
struct Crossing {
  bool likely = false, possible = false;  // within 6 sigma; within the worst case
  double probability = 0;
};

Crossing crossing(double y, double sigma, double worst) {
  const double to_tie = spacing(Format::bf16, y) / 2 - std::abs(nearest(Format::bf16, y) - y);
  Crossing c;
  c.likely = to_tie < 6 * sigma;
  c.possible = to_tie < worst;
  if (c.likely) c.probability = std::erfc(to_tie / sigma / std::sqrt(2.0)) / 2;
  return c;
}

void write_normalised(const std::vector<double>& x, const GatedSum& y, const Gates& gates,
                      const FusedNorm& fused, const Numerics& numerics, std::int64_t row,
                      Estimate& out) {
  const Normalisation norm = normalisation(x, y, fused.eps, numerics);
  RowMean mean;
  double magnitude = 0;
  for (std::int64_t h = 0; h < out.columns; ++h) {
    const std::int64_t i = row * out.columns + h;
    const double weight = decode_bf16(fused.weight[h]);
    const double gain = norm.r.value * weight;
    const double value = y.value[h] * gain;
    const Vector4 column = column_of(x, out.columns, h);
    const Vector4 gate_gain = normalised_gain(norm, gain, y.value[h], column);
    const double y_sigma = std::sqrt(variance_of(gates, column) + y.own_variance[h]);
    const Crossing cross = crossing(y.shifted[h], y_sigma, y.worst[h]);
    const double step = std::abs(spacing(Format::bf16, y.shifted[h]) * gain);
    const double own = gain * gain * y.own_variance[h] + 2 * rounding_variance(kUnitF32 * value);
    out.value[i] = value;
    out.shift[i] = nearest(Format::bf16, y.shifted[h]) * norm.shifted_r * weight - value;
    out.sigma[i] =
        std::sqrt(variance_of(gates, gate_gain) + own + value * value * norm.r.variance) +
        (cross.likely ? step : 0);
    const double relative = (norm.r.worst + 2 * kUnitF32) * (1 + kUnitBf16);
    out.worst[i] = std::abs(norm.shifted_r * weight) *
                       (y.worst[h] * (1 + relative) + std::abs(y.shifted[h]) * relative) +
                   (cross.possible ? step * (1 + relative) : 0);
    mean.add(value, gate_gain, own + step * step * cross.probability);
    magnitude += std::abs(value) / static_cast<double>(out.columns);
  }
  mean.write(gates, magnitude * magnitude * norm.r.variance, magnitude * function_error(numerics),
             row, out);
}

}  // namespace

void gated_sum(const std::vector<double>& x, const Gates& gates, const FusedNorm& norm,
               const Numerics& numerics, std::int64_t row, Estimate& out) {
  const GatedSum y = sum_streams(x, gates, out.columns);
  if (norm.weight == nullptr) {
    write_sum(x, y, gates, row, out);
  } else {
    write_normalised(x, y, gates, norm, numerics, row, out);
  }
}

}  // namespace plumb::reference
