// SPDX-License-Identifier: Apache-2.0
//
// Error model. What RoPE leaves alone is the row norm. The rest: the error of r is the row's; the
// rounding of x r goes into both elements of its pair; products and sums are each element's own.
//
// Rounded twice, x r is a bf16 number that is known but near a tie: its rounding shifts both
// elements of its pair, and an error of r may move it to the next bf16 number.
//
// With a rounded factor r is a bf16 number, known but near a tie. x r then has no error.
#include "reference/norm/q_head_rms_norm_rope.h"

#include <Eigen/Core>
#include <array>
#include <cmath>

#include "reference/formats/bfloat16.h"

namespace plumb::reference {

namespace {

// r as a bf16 number. Writes the row, as estimate_row_norm().
RowScale round_factor(const std::vector<double>& x, const RowScale& r, std::int64_t row,
                      Estimate& estimate) {
  const InnerRounding inner = round_in_between(r.value, r.error.worst);
  RowScale rounded{decode_bf16(encode_bf16(r.value)), {}, 0};
  const double flip = inner.flip > 0 ? inner.flip / rounded.value : 0;
  rounded.error = {flip, flip};
  for (int i = 0; i < kHeadDim; ++i) {
    const std::int64_t at = row * kHeadDim + i;
    estimate.value[at] = x[i] * rounded.value;
    estimate.sigma[at] = estimate.worst[at] = std::abs(estimate.value[at]) * flip;
  }
  rounded.magnitudes = sum_of_magnitudes(&estimate.value[row * kHeadDim], kHeadDim);
  return rounded;
}

// The norm of a head is rounded in front of RoPE. Adds what that changes.
void round_before_rotation(const double* y, const float* cos_sin, double relative,
                           std::int64_t first, Estimate& estimate) {
  std::array<double, kRopeDim> shift, flip;
  for (int i = 0; i < kRopeDim; ++i) {
    const InnerRounding inner = round_in_between(y[i], relative);
    shift[i] = inner.shift;
    flip[i] = inner.flip;
  }
  const auto rotated = rotate(shift.data(), cos_sin, Rotation::forward);
  for (int i = 0; i < kRopeDim; ++i) {
    const double cosine = cos_sin[i / 2], sine = cos_sin[kRopeDim / 2 + i / 2];
    const double flips = std::abs(cosine) * flip[i] + std::abs(sine) * flip[i ^ 1];
    estimate.shift[first + i] = rotated[i].value;
    estimate.sigma[first + i] += flips;
    estimate.worst[first + i] += flips;
  }
}

void write_rotated(const std::vector<double>& x, const float* cos_sin, const RowScale& r,
                   NormRounding rounding, std::int64_t row, Estimate& estimate) {
  const double product = rounding == NormRounding::factor ? 0 : kUnitF32;  // relative error of x r
  const double variance = product * product / 3;
  std::array<double, kRopeDim> y;
  for (int i = 0; i < kRopeDim; ++i) y[i] = x[kNopeDim + i] * r.value;
  const auto rotated = rotate(y.data(), cos_sin, Rotation::forward);
  double own_variance = 0;
  for (int i = 0; i < kRopeDim; ++i) {
    const Rotated& element = rotated[i];
    const std::int64_t at = row * kHeadDim + kNopeDim + i;
    const double of_x_r = variance * element.product_squares;
    const double of_r = element.value * r.error.sigma;
    estimate.value[at] = element.value;
    estimate.sigma[at] = of_r * of_r + of_x_r + element.variance;
    estimate.worst[at] =
        (std::abs(element.value) * r.error.worst + product * element.magnitude + element.worst) *
        (1 + 4 * kUnitF32);
    // The two elements of a pair may have the rounding of x r with one sign: twice its variance.
    own_variance += 2 * of_x_r + element.variance;
  }
  Eigen::Map<Eigen::ArrayXd> sigma(&estimate.sigma[row * kHeadDim + kNopeDim], kRopeDim);
  sigma = sigma.sqrt();
  if (rounding != NormRounding::once) {
    round_before_rotation(y.data(), cos_sin, r.error.worst + product, row * kHeadDim + kNopeDim,
                          estimate);
  }
  const double magnitudes = r.magnitudes - sum_of_magnitudes(y.data(), kRopeDim) +
                            sum_of_magnitudes(&estimate.value[row * kHeadDim + kNopeDim], kRopeDim);
  estimate.row_mean_sigma[row] =
      std::sqrt(magnitudes * magnitudes * r.error.sigma * r.error.sigma + own_variance) / kHeadDim;
}

}  // namespace

Estimate q_head_rms_norm_rope(const QHeadRmsNormRopeInputs& inputs, const Numerics& numerics) {
  Estimate estimate;
  estimate.resize(inputs.tokens * inputs.heads, kHeadDim);
  if (inputs.rounding != NormRounding::once) estimate.shift.assign(estimate.value.size(), 0);
  parallel_for(estimate.rows, 4, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> x(kHeadDim);
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t token = row / inputs.heads, head = row % inputs.heads;
      decode_row(inputs.q + token * inputs.q_token_stride + head * kHeadDim, x);
      RowScale r =
          estimate_row_norm(x, {}, inputs.eps, NormRounding::once, numerics, row, estimate);
      if (inputs.rounding == NormRounding::factor) r = round_factor(x, r, row, estimate);
      write_rotated(x, inputs.cos_sin + inputs.rows[token] * kRopeDim, r, inputs.rounding, row,
                    estimate);
    }
  });
  return estimate;
}

}  // namespace plumb::reference
