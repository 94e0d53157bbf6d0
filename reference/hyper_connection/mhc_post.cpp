// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/mhc_post.h"

#include <array>
#include <cmath>

#include "reference/formats/bfloat16.h"

namespace plumb::reference {

namespace {

constexpr int kTerms = kStreams + 1;

void write_row(const MhcPost& inputs, std::int64_t token, int n, const Numerics& numerics,
               Estimate& out) {
  const Streams& residual = inputs.residual;
  const std::int64_t row = token * kStreams + n;
  const float* comb = inputs.comb + token * kStreams * kStreams;
  double row_variance = 0;
  for (std::int64_t h = 0; h < residual.hidden; ++h) {
    std::array<double, kTerms> product{};
    product[0] = inputs.post[row] * decode_bf16(inputs.x[token * residual.hidden + h]);
    for (int m = 0; m < kStreams; ++m) {
      const std::uint16_t bits =
          residual.data[token * residual.token_stride + m * residual.slot_stride + h];
      product[m + 1] = comb[m * kStreams + n] * decode_bf16(bits);
    }
    double sum = 0, magnitude = 0, square = 0;
    for (const double p : product) {
      sum += p;
      magnitude += std::abs(p);
      square += p * p;
    }
    const SumError added = sum_error(kTerms, sum, magnitude, square, numerics);
    const double variance = added.sigma * added.sigma + rounding_variance(kUnitF32) * square;
    const std::int64_t i = row * residual.hidden + h;
    out.value[i] = sum;
    out.sigma[i] = std::sqrt(variance);
    out.worst[i] = (added.worst + kUnitF32 * magnitude) * (1 + kTerms * kUnitF32);
    row_variance += variance;
  }
  out.row_mean_sigma[row] = std::sqrt(row_variance) / static_cast<double>(residual.hidden);
}

}  // namespace

Estimate mhc_post(const MhcPost& inputs, const Numerics& numerics) {
  Estimate out;
  out.resize(inputs.residual.tokens * kStreams, inputs.residual.hidden);
  parallel_for(inputs.residual.tokens, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      for (int n = 0; n < kStreams; ++n) write_row(inputs, token, n, numerics, out);
    }
  });
  return out;
}

}  // namespace plumb::reference
