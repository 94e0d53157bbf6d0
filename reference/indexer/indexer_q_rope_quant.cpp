// SPDX-License-Identifier: Apache-2.0
#include "reference/indexer/indexer_q_rope_quant.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "reference/formats/bfloat16.h"
#include "reference/rounding.h"

namespace plumb::reference {

namespace {

constexpr double kLeastBf16 = 0x1p-133;  // smallest subnormal bf16: smaller errors would round to 0

bool is_fp32(double value) { return double{static_cast<float>(value)} == value; }

// One output of a rotation, a * b + c * d in fp32, with its error.
struct RotatedValue {
  double value = 0, sigma = 0, worst = 0;
};

RotatedValue sum_of_products(double a, double b, double c, double d) {
  const double first = a * b, second = c * d, sum = first + second;
  // All results are fp32 numbers, so nothing is rounded, with or without a fused multiply-add.
  if (is_fp32(first) && is_fp32(second) && is_fp32(sum)) return {sum, 0, 0};
  return {sum, kUnitF32 * kUniformSigma * std::hypot(first, second, sum),
          kUnitF32 * (std::abs(first) + std::abs(second) + std::abs(sum))};
}

// Dimension d of a rotated head.
RotatedValue rotated_value(const IndexerQRopeQuant& inputs, const std::uint16_t* head,
                           const float* cos_sin, std::int64_t d) {
  const std::int64_t i = d - inputs.rope_offset, half = inputs.rope_dim / 2;
  if (i < 0 || i >= inputs.rope_dim) return {decode_bf16(head[d]), 0, 0};
  const std::int64_t pair = inputs.halves ? i % half : i / 2;
  const bool is_first = inputs.halves ? i < half : i % 2 == 0;
  const std::int64_t distance = inputs.halves ? half : 1;
  const double cosine = cos_sin[pair], sine = cos_sin[half + pair];
  if (is_first) {
    return sum_of_products(decode_bf16(head[d]), cosine, decode_bf16(head[d + distance]), -sine);
  }
  return sum_of_products(decode_bf16(head[d]), cosine, decode_bf16(head[d - distance]), sine);
}

double scale_for(double amax, const IndexerQRopeQuant& inputs) {
  const double ratio = std::max(amax, inputs.amax_floor) / e4m3_quantisation_max(inputs.dialect);
  if (!inputs.pow2_scale) return ratio;
  return decode(CodeFormat::ue8m0, encode(CodeFormat::ue8m0, ratio));
}

double to_bf16(double value) { return decode_bf16(encode_bf16(value)); }

// Rounds values to bf16, as kernels store them in between. The error becomes 0 unless it reaches a
// tie.
void round_to_bf16(Estimate& values) {
  for (std::size_t at = 0; at < values.value.size(); ++at) {
    const double exact = values.value[at], error = values.worst[at];
    const double rounded = to_bf16(exact);
    values.value[at] = rounded;
    values.worst[at] = std::max(to_bf16(exact + error) - rounded, rounded - to_bf16(exact - error));
    values.sigma[at] = kUniformSigma * values.worst[at];
  }
}

// The right scale nearest to the scale `shown` by a weight. A transformed value has the error of a
// long sum, so its rounding may allow more than two bf16 numbers. A power-of-two scale has at most
// two right values.
double nearest_scale(const HeadScale& scale, double shown, const IndexerQRopeQuant& inputs) {
  const double quotient = e4m3_quantisation_max(inputs.dialect);
  const double of_bf16 =
      std::clamp(to_bf16(shown * quotient) / quotient, scale.least, scale.largest);
  double nearest = scale.exact;
  for (const double honest : {scale.least, scale.largest, inputs.pow2_scale ? nearest : of_bf16}) {
    const auto distance = [&](double one) { return std::abs(std::log(one / shown)); };
    if (distance(honest) < distance(nearest)) nearest = honest;
  }
  return nearest;
}

// Scales of a head whose largest value is in [least, largest].
HeadScale head_scale(double least, double exact, double largest, const IndexerQRopeQuant& inputs) {
  HeadScale scale{scale_for(exact, inputs), scale_for(least, inputs), scale_for(largest, inputs)};
  if (inputs.pow2_scale || is_power_of_two(scale.exact)) return scale;
  scale.error = kUnitF32;
  // If values are not rounded to bf16, any scale between the least and the largest is right.
  if (!inputs.rounds_to_bf16) {
    scale.error += (scale.largest - scale.least) / scale.exact;
    scale.least = scale.largest = scale.exact;
  }
  return scale;
}

// Dimension i of the Hadamard transform of a row, without the factor dim^-0.5.
double signed_sum(const double* row, std::int64_t dim, std::int64_t i) {
  double sum = 0;
  for (std::int64_t j = 0; j < dim; ++j) {
    sum += std::popcount(static_cast<std::uint64_t>(i & j)) % 2 ? -row[j] : row[j];
  }
  return sum;
}

// Each dimension has the errors of all terms, the error of the sum in any order, and one rounding
// each of the constant dim^-0.5 and the product with it. The order also decides the sign of a sum
// of zeros.
void transform_row(const double* terms, double terms_variance, double terms_worst,
                   const Numerics& numerics, std::int64_t row, Estimate& estimate) {
  const std::int64_t dim = estimate.columns;
  const double root = 1 / std::sqrt(static_cast<double>(dim));
  double magnitudes = 0, squares = 0;
  for (std::int64_t j = 0; j < dim; ++j) {
    magnitudes += std::abs(terms[j]);
    squares += terms[j] * terms[j];
  }
  for (std::int64_t i = 0; i < dim; ++i) {
    const std::int64_t at = row * dim + i;
    const double sum = signed_sum(terms, dim, i), product = 2 * kUnitF32 * std::abs(sum);
    SumError error = sum_error(dim, sum, magnitudes, squares, numerics);
    if (magnitudes == 0)
      error.sigma = error.worst = std::sqrt(static_cast<double>(dim)) * kLeastBf16;
    estimate.value[at] = root * sum;
    estimate.sigma[at] = root * std::sqrt(terms_variance + error.sigma * error.sigma +
                                          product * product * kUniformSigma * kUniformSigma);
    estimate.worst[at] = root * (terms_worst + error.worst + product) * (1 + 4 * kUnitF32);
  }
}

void transform(const Numerics& numerics, Estimate& estimate) {
  std::vector<double> terms(static_cast<std::size_t>(estimate.columns));
  for (std::int64_t row = 0; row < estimate.rows; ++row) {
    const std::int64_t first = row * estimate.columns;
    double variance = 0, worst = 0;
    for (std::int64_t j = 0; j < estimate.columns; ++j) {
      terms[j] = estimate.value[first + j];
      variance += estimate.sigma[first + j] * estimate.sigma[first + j];
      worst += estimate.worst[first + j];
    }
    transform_row(terms.data(), variance, worst, numerics, row, estimate);
  }
}

}  // namespace

Estimate rotated_queries(const IndexerQRopeQuant& inputs, const Numerics& numerics) {
  Estimate rotated;
  rotated.resize(inputs.tokens * inputs.heads, inputs.dim);
  for (std::int64_t row = 0; row < rotated.rows; ++row) {
    const std::int64_t token = row / inputs.heads;
    const std::uint16_t* head =
        inputs.q + token * inputs.q_token_stride + row % inputs.heads * inputs.dim;
    const float* cos_sin = inputs.cos_sin + inputs.positions[token] * inputs.rope_dim;
    for (std::int64_t d = 0; d < inputs.dim; ++d) {
      const RotatedValue one = rotated_value(inputs, head, cos_sin, d);
      const std::int64_t at = row * inputs.dim + d;
      rotated.value[at] = one.value;
      rotated.sigma[at] = one.sigma;
      rotated.worst[at] = one.worst;
    }
  }
  if (!inputs.hadamard) return rotated;
  if (inputs.rounds_to_bf16) round_to_bf16(rotated);
  transform(numerics, rotated);
  return rotated;
}

std::vector<HeadScale> head_scales(const IndexerQRopeQuant& inputs, const Estimate& rotated) {
  std::vector<HeadScale> scales;
  const auto rounded = [&](double value) { return inputs.rounds_to_bf16 ? to_bf16(value) : value; };
  for (std::int64_t row = 0; row < rotated.rows; ++row) {
    double exact = 0, least = 0, largest = 0;
    for (std::int64_t at = row * rotated.columns; at < (row + 1) * rotated.columns; ++at) {
      const double size = std::abs(rotated.value[at]), error = rotated.arithmetic(at);
      exact = std::max(exact, rounded(size));
      least = std::max(least, rounded(size - error));
      largest = std::max(largest, rounded(size + error));
    }
    scales.push_back(head_scale(least, exact, largest, inputs));
  }
  return scales;
}

std::vector<UsedScale> scales_used(const IndexerQRopeQuant& inputs,
                                   const std::vector<HeadScale>& honest, const float* weights_out) {
  std::vector<UsedScale> scales;
  for (std::size_t i = 0; i < honest.size(); ++i) {
    const double rest = decode_bf16(inputs.weights[i]) * inputs.softmax_scale * inputs.head_scale;
    const double shown = weights_out[i] / rest;  // NaN or infinite if the weight shows nothing
    const HeadScale& scale = honest[i];
    const bool decides = shown > 0 && std::isfinite(shown);
    scales.push_back({decides ? nearest_scale(scale, shown, inputs) : scale.exact, scale.error});
  }
  return scales;
}

CodeEstimate indexer_q_codes(const IndexerQRopeQuant& inputs, const Estimate& rotated,
                             const std::vector<UsedScale>& scales) {
  CodeEstimate codes{.format = code_format(inputs.dialect), .before = rotated};
  // Division by a power of two does not move the rounding boundaries of bf16.
  if (inputs.rounds_to_bf16 && inputs.pow2_scale) codes.through = Format::bf16;
  if (inputs.rounds_to_bf16 && !inputs.pow2_scale) round_to_bf16(codes.before);
  if (!inputs.pow2_scale) codes.shared_error = inputs.dim;
  for (std::size_t at = 0; at < rotated.value.size(); ++at) {
    const UsedScale& scale = scales[at / static_cast<std::size_t>(inputs.dim)];
    double& value = codes.before.value[at];
    double &sigma = codes.before.sigma[at], &worst = codes.before.worst[at];
    // The division is exact if the scale is a power of two.
    value /= scale.value;
    sigma /= scale.value;
    worst /= scale.value;
    if (scale.error > 0) {
      // The scale is no power of two: kernels round the quotient, or the inverse and the product
      // with it.
      const double relative = (scale.error + 2 * kUnitF32) * std::abs(value);
      sigma = std::hypot(sigma, kUniformSigma * relative);
      worst += relative;
    }
    // A NaN that comes from the inputs has no error.
    if (std::isnan(value)) sigma = worst = 0;
  }
  return codes;
}

Estimate indexer_q_weights(const IndexerQRopeQuant& inputs, const std::vector<UsedScale>& scales) {
  Estimate weights;
  weights.resize(inputs.tokens, inputs.heads);
  weights.output = Format::f32;
  for (std::int64_t token = 0; token < inputs.tokens; ++token) {
    double magnitudes = 0;
    for (std::int64_t head = 0; head < inputs.heads; ++head) {
      const std::int64_t at = token * inputs.heads + head;
      const UsedScale& scale = scales[static_cast<std::size_t>(at)];
      const double weight =
          decode_bf16(inputs.weights[at]) * scale.value * inputs.softmax_scale * inputs.head_scale;
      // Three products round. One rounding is the output's own, and the product with the scale is
      // exact if the scale is a power of two.
      const double relative = (scale.error > 0 ? 2 : 1) * kUnitF32 + scale.error;
      weights.value[at] = weight;
      weights.sigma[at] = relative * kUniformSigma * std::abs(weight);
      weights.worst[at] = relative * std::abs(weight);
      magnitudes += std::abs(weight);
    }
    // Kernels may multiply softmax_scale and head_scale first, which is one rounding for all heads.
    weights.row_systematic[token] =
        kUnitF32 * magnitudes / static_cast<double>(std::max<std::int64_t>(inputs.heads, 1));
  }
  return weights;
}

}  // namespace plumb::reference
