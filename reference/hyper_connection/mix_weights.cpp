// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/mix_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>

#include "reference/rounding.h"
#include "reference/tracked/matmul_sums.h"
#include "reference/tracked/tracked_node.h"

namespace plumb::reference {

namespace {

int dropped_bits(Format format) {
  switch (format) {
    case Format::tf32:
    case Format::tf32_truncated: return 13;
    case Format::bf16: return 16;
    default: return 0;
  }
}

// Rounds away the low bits of an fp32 significand. Ties stay as they are.
float without_bits(float x, int bits, bool truncated) {
  const auto raw = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t unit = 1U << bits, below = raw & (unit - 1);
  if (!truncated && bits > 0 && below == unit / 2) return x;
  return std::bit_cast<float>(raw - below + (!truncated && below > unit / 2 ? unit : 0));
}

double in_two_bf16(double x) {
  const double high = nearest(Format::bf16, x);
  return high + nearest(Format::bf16, x - high);
}

}  // namespace

MixWeights::MixWeights(const float* fn, int columns, std::int64_t depth, std::int64_t begin,
                       std::int64_t end, const Numerics& numerics, WeightForm form,
                       StreamForm streams)
    : columns_(columns),
      how_(numerics),
      form_(form),
      streams_(streams),
      weights_({}, {0}, numerics) {
  const int bits = form == WeightForm::two_bf16 ? 0 : dropped_bits(numerics.product);
  const bool truncated = numerics.product == Format::tf32_truncated;
  const bool rounds = bits > 0 || form == WeightForm::two_bf16;
  const auto size = static_cast<std::size_t>((end - begin) * columns);
  TrackedNode node{{end - begin, columns}, weights_.node()->numerics, std::vector<double>(size)};
  if (rounds) node.centres.resize(size);
  for (std::int64_t k = begin; k < end; ++k) {
    for (int c = 0; c < columns; ++c) {
      const auto at = static_cast<std::size_t>((k - begin) * columns + c);
      const float weight = fn[c * depth + k];
      node.values[at] = weight;
      if (!rounds) continue;
      const float stored = without_bits(weight, bits, truncated);
      node.centres[at] = bits > 0 ? stored : in_two_bf16(weight);
      const bool tie = bits > 0 && stored == weight && without_bits(weight, bits, true) != weight;
      if (tie) ties_.push_back({k - begin, c, unit_roundoff(numerics.product) * weight});
    }
  }
  if (rounds) how_.product = Format::f64;  // products of the rounded weights are exact
  weights_ = Tracked(std::make_shared<TrackedNode>(std::move(node)));
}

Tracked MixWeights::mixes(const Tracked& x) const {
  Tracked mixes = matmul(x, weights_, how_, TermOrder::usual);
  if (form_ == WeightForm::two_bf16) {  // each product is added in two pieces
    Estimate again = estimate_of(mixes, Format::f32);
    again.shift.clear();
    mixes = with_errors(std::move(mixes), again);
  }
  const Estimate errors = operand_errors(x, mixes);
  return with_errors(std::move(mixes), errors);
}

// Errors of weights that are ties and of scaled streams. Each element of these has its own
// rounding.
Estimate MixWeights::operand_errors(const Tracked& x, const Tracked& mixes) const {
  const std::int64_t rows = x.sizes()[0], depth = x.sizes()[1];
  Estimate errors;
  errors.resize(rows, columns_);
  if (streams_ == StreamForm::scaled) {
    const OperandError error = scaled_operand_error(weights_.node()->numerics->product);
    errors.sigma = sums_of(rows, x.values(), square);
    errors.worst = sums_of(rows, x.values(), std::abs);
    for (std::int64_t i = 0; i < rows * columns_; ++i) {
      errors.sigma[i] = error.sigma * std::sqrt(errors.sigma[i]);
      errors.worst[i] *= error.worst;
      errors.row_systematic[i / columns_] += error.bias * std::abs(mixes.values()[i]) / columns_;
    }
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const Tie& tie : ties_) {
      const std::int64_t i = row * columns_ + tie.column;
      const double error = std::abs(x.values()[row * depth + tie.k] * tie.half);
      errors.sigma[i] = std::hypot(errors.sigma[i], error);
      errors.worst[i] += error;
    }
  }
  return errors;
}

std::vector<double> MixWeights::sums_of(std::int64_t rows, const std::vector<double>& x,
                                        double (*function)(double)) const {
  const auto of_each = [&](std::vector<double> numbers) {
    std::ranges::transform(numbers, numbers.begin(), function);
    return numbers;
  };
  return MatmulShape{.m = rows, .k = weights_.sizes()[0], .n = columns_}.product(
      of_each(x), of_each(weights_.values()));
}

}  // namespace plumb::reference
