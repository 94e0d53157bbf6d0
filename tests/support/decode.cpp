// SPDX-License-Identifier: Apache-2.0
#include "tests/support/decode.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/random.h"

namespace plumb::tests {

namespace {

using reference::kUniformSigma;
using reference::kUnitBf16;
using reference::kUnitF32;
using MatrixD = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Rounds a float to its upper `bits` bits, to nearest even.
float keep_bits(float x, int bits) {
  const int dropped = 32 - bits;
  const auto word = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t odd = (word >> dropped) & 1;
  const std::uint32_t rounded = word + (1u << (dropped - 1)) - 1 + odd;
  return std::bit_cast<float>(rounded >> dropped << dropped);
}

Matrix normal_matrix(int rows, int columns, Random& random) {
  Matrix matrix(rows, columns);
  for (float& x : matrix.reshaped()) x = to_bf16(static_cast<float>(random.normal()));
  return matrix;
}

Matrix make_values(const DecodeShape& shape, Values values, Random& random) {
  Matrix value = normal_matrix(shape.keys, shape.width, random);
  if (values == Values::shared) value = value.col(0).replicate(1, shape.width).eval();
  if (values == Values::near_one) {
    for (float& x : value.reshaped()) x = to_bf16(1 + 0.02f * x);
  }
  return value;
}

// Partial result of one split of a row, as flash attention keeps it.
struct Partial {
  float largest = 0, sum = 0;
  std::vector<float> out;  // normalised
};

Partial run_split(const Kernel& kernel, const std::vector<int>& keys, const Decode::Token& token,
                  int head, float scale) {
  std::vector<float> logits;
  for (const int key : keys) {
    float dot = 0;
    for (int c = 0; c < token.key.cols(); ++c) dot += token.query(head, c) * token.key(key, c);
    logits.push_back(dot * scale);
  }
  const auto width = static_cast<int>(token.value.cols());
  Partial partial{*std::max_element(logits.begin(), logits.end()), 0,
                  std::vector<float>(static_cast<std::size_t>(width))};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const float p = std::exp(logits[i] - partial.largest);
    partial.sum += p;
    kernel.accumulate(partial.out.data(), kernel.round_probability(p),
                      token.value.row(keys[i]).data(), width);
  }
  for (float& x : partial.out) x /= partial.sum;
  return partial;
}

void combine(const std::vector<Partial>& partials, float* out) {
  float largest = -std::numeric_limits<float>::infinity(), sum = 0;
  for (const Partial& partial : partials) largest = std::max(largest, partial.largest);
  for (const Partial& partial : partials) sum += partial.sum * std::exp(partial.largest - largest);
  for (const Partial& partial : partials) {
    const float weight = partial.sum * std::exp(partial.largest - largest) / sum;
    for (std::size_t d = 0; d < partial.out.size(); ++d) out[d] += weight * partial.out[d];
  }
}

// Attention of one token in double precision, with the sums that its error bounds need.
struct Truth {
  MatrixD out;             // [heads, width]
  MatrixD magnitudes;      // sum p |v| / L
  MatrixD squares;         // sum (p v)^2 / L^2
  Eigen::VectorXd shared;  // per head: sum (p_i mean_d(sign_d v_id) / L)^2
};

Truth solve(const Decode::Token& token, double scale) {
  const MatrixD value = token.value.cast<double>();
  MatrixD p = token.query.cast<double>() * token.key.cast<double>().transpose() * scale;
  p.colwise() -= p.rowwise().maxCoeff().eval();
  p = p.array().exp();
  p.array().colwise() /= p.rowwise().sum().array().eval();
  Truth truth;
  truth.out = p * value;
  truth.magnitudes = p * value.cwiseAbs();
  truth.squares = p.cwiseAbs2() * value.cwiseAbs2();
  const MatrixD means =
      truth.out.cwiseSign() * value.transpose() / static_cast<double>(value.cols());
  truth.shared = p.cwiseProduct(means).rowwise().squaredNorm();
  return truth;
}

// Rounding p_i moves all elements of v_i. The fp32 errors are four orders of magnitude smaller: the
// sums over the keys and, common to the row, logits, exponentials, L and the combination of splits.
void estimate_row(const Truth& truth, int head, int keys, reference::Estimate& estimate,
                  std::int64_t row) {
  constexpr double kRowUnits = 64;
  double independent = 0, mean = 0;
  for (std::int64_t d = 0; d < estimate.columns; ++d) {
    const std::int64_t i = row * estimate.columns + d;
    const double y = truth.out(head, d);
    const auto sum =
        reference::sum_error(keys, y, truth.magnitudes(head, d), truth.squares(head, d), {});
    const double common = kRowUnits * kUnitF32 * std::abs(y);
    estimate.value[i] = y;
    const double rounded_p = kUnitBf16 * kUniformSigma * std::sqrt(truth.squares(head, d));
    estimate.sigma[i] = std::hypot(rounded_p, sum.sigma, common);
    estimate.worst[i] = kUnitBf16 * truth.magnitudes(head, d) + sum.worst + common;
    independent += sum.sigma * sum.sigma;
    mean += common;
  }
  const auto columns = static_cast<double>(estimate.columns);
  estimate.row_mean_sigma[row] =
      std::hypot(kUnitBf16 * kUniformSigma * std::sqrt(truth.shared[head]),
                 std::sqrt(independent) / columns, mean / columns);
}

}  // namespace

double Decode::scale() const { return 1 / std::sqrt(static_cast<double>(shape.key_width)); }

Decode make_decode(const DecodeShape& shape, Values values, std::uint64_t seed) {
  Random random(seed);
  Decode decode{shape, {}};
  for (int t = 0; t < shape.tokens; ++t) {
    decode.tokens.push_back({normal_matrix(shape.heads, shape.key_width, random),
                             normal_matrix(shape.keys, shape.key_width, random),
                             make_values(shape, values, random)});
  }
  return decode;
}

reference::Estimate estimate_decode(const Decode& decode) {
  const DecodeShape& shape = decode.shape;
  reference::Estimate estimate;
  estimate.resize(shape.rows(), shape.width);
  for (int t = 0; t < shape.tokens; ++t) {
    const Truth truth = solve(decode.tokens[t], decode.scale());
    for (int h = 0; h < shape.heads; ++h) {
      estimate_row(truth, h, shape.keys, estimate, t * shape.heads + h);
    }
  }
  return estimate;
}

Kernel honest_kernel(const DecodeShape& shape) {
  std::vector<int> keys(static_cast<std::size_t>(shape.keys));
  std::iota(keys.begin(), keys.end(), 0);
  return {{keys}, 1, to_bf16, accumulate_f32};
}

std::vector<float> run(const Kernel& kernel, const Decode& decode) {
  const DecodeShape& shape = decode.shape;
  const auto scale = static_cast<float>(decode.scale() * kernel.scale_factor);
  std::vector<float> out(static_cast<std::size_t>(shape.elements()));
  for (int row = 0; row < shape.rows(); ++row) {
    std::vector<Partial> partials;
    for (const std::vector<int>& keys : kernel.splits) {
      partials.push_back(
          run_split(kernel, keys, decode.tokens[row / shape.heads], row % shape.heads, scale));
    }
    combine(partials, &out[static_cast<std::size_t>(row * shape.width)]);
  }
  return out;
}

float to_bf16(float x) { return keep_bits(x, 16); }
float to_bf16_truncated(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffff0000u);
}
float to_three_bits(float x) { return keep_bits(x, 12); }
float unrounded(float x) { return x; }

void accumulate_f32(float* sums, float p, const float* value, int width) {
  Eigen::Map<Eigen::ArrayXf>(sums, width) += p * Eigen::Map<const Eigen::ArrayXf>(value, width);
}
void accumulate_bf16(float* sums, float p, const float* value, int width) {
  for (int d = 0; d < width; ++d) sums[d] = to_bf16(sums[d] + p * value[d]);
}

cases::HostTensor store(const DecodeShape& shape, const std::vector<float>& out,
                        float (*rounding)(float)) {
  cases::HostTensor tensor({.name = "out",
                            .dtype = cases::Dtype::bf16,
                            .shape = {shape.tokens, shape.heads, shape.width}});
  for (std::size_t i = 0; i < out.size(); ++i) {
    tensor.data<std::uint16_t>()[i] =
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounding(out[i])) >> 16);
  }
  return tensor;
}

}  // namespace plumb::tests
