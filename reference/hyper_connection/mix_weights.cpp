// SPDX-License-Identifier: Apache-2.0
#include "reference/hyper_connection/mix_weights.h"

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "reference/four_doubles.h"
#include "reference/interleaved_sums.h"
#include "reference/matrix_error.h"
#include "reference/rounding.h"

namespace plumb::reference {

namespace {

constexpr int kGroup = 4;  // columns of fn that are adjacent in memory

// Error of rounding away the low bits of an fp32 significand, and whether the number was a tie.
struct OperandRounding {
  float error = 0;
  bool tie = false;
};

float rounding_to_two_bf16(float x) {
  const double high = nearest(Format::bf16, x);
  return static_cast<float>(high + nearest(Format::bf16, x - high) - x);
}

OperandRounding round_operand(float x, int bits, bool truncated) {
  const auto raw = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t unit = 1U << bits;
  const std::uint32_t below = raw & (unit - 1);
  if (!truncated && below == unit / 2) return {0, true};
  const std::uint32_t kept = raw - below + (!truncated && below > unit / 2 ? unit : 0);
  return {std::bit_cast<float>(kept) - x, false};
}

int dropped_bits(Format format) {
  switch (format) {
    case Format::tf32:
    case Format::tf32_truncated: return 13;
    case Format::bf16: return 16;
    default: return 0;
  }
}

// Sums of the products of x with one group of columns: the products by lane (term number modulo 4),
// their magnitudes and their squares.
struct BlockSums {
  double lanes[4][kGroup], magnitudes[kGroup], squares[kGroup];
};

// Magnitudes and squares alternate between two accumulators each, so that consecutive additions do
// not depend on each other.
PLUMB_FOR_ANY_TARGET void multiply_block(const double* x, const double* weight, std::int64_t terms,
                                         BlockSums& sums) {
  Four lanes[4] = {}, magnitudes[2] = {}, squares[2] = {};
  const auto add = [&](std::int64_t k, int lane) __attribute__((always_inline)) {
    Four columns, size;
    load(weight + kGroup * k, columns);
    const Four product = columns * x[k];
    magnitude_of(product, size);
    lanes[lane] += product;
    magnitudes[lane % 2] += size;
    squares[lane % 2] += product * product;
  };
  std::int64_t k = 0;
  for (; k + 4 <= terms; k += 4) {
    add(k, 0);
    add(k + 1, 1);
    add(k + 2, 2);
    add(k + 3, 3);
  }
  if (k < terms) add(k, 0);
  if (k + 1 < terms) add(k + 1, 1);
  if (k + 2 < terms) add(k + 2, 2);
  for (int lane = 0; lane < 4; ++lane) store(lanes[lane], sums.lanes[lane]);
  store(magnitudes[0] + magnitudes[1], sums.magnitudes);
  store(squares[0] + squares[1], sums.squares);
}

PLUMB_WIDE_TARGET void wide_multiply_block(const double* x, const double* weight,
                                           std::int64_t terms, BlockSums& sums) {
  multiply_block(x, weight, terms, sums);
}

void narrow_multiply_block(const double* x, const double* weight, std::int64_t terms,
                           BlockSums& sums) {
  multiply_block(x, weight, terms, sums);
}

// Sums over several blocks, and the partial sums of the usual orders of addition.
class GroupSums {
 public:
  using Columns = Eigen::Array4d;
  Columns sum = Columns::Zero(), magnitude = Columns::Zero(), square = Columns::Zero();
  InterleavedSums<Columns> orders;

  void add_block(const double* x, const double* weight, std::int64_t terms) {
    BlockSums sums;
    multiply_(x, weight, terms, sums);
    Columns lanes[4];
    for (int lane = 0; lane < 4; ++lane) lanes[lane] = Eigen::Map<Columns>(sums.lanes[lane]);
    const Columns squares = Eigen::Map<Columns>(sums.squares);
    orders.add_block(terms, lanes, squares);
    sum += (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    magnitude += Eigen::Map<Columns>(sums.magnitudes);
    square += squares;
  }

 private:
  decltype(&narrow_multiply_block) multiply_ =
      has_wide_registers() ? &wide_multiply_block : &narrow_multiply_block;
};

int significand_bits(Format format) {
  switch (format) {
    case Format::tf32:
    case Format::tf32_truncated: return 11;
    case Format::bf16: return 8;
    default: return 24;
  }
}

// A mix whose products a matrix unit adds up.
Uncertain mix_of_unit(const TermSums& sums, std::int64_t terms, StreamForm streams,
                      const Numerics& numerics) {
  const Format of_stream = streams == StreamForm::stored ? Format::bf16 : numerics.product;
  const int product_bits = significand_bits(of_stream) + significand_bits(numerics.product);
  const MatrixError error = matrix_sum_error(terms, sums, product_bits, numerics);
  const double sigma = error.sigma + error.bias / 6;
  return {
      .value = sums.sum, .variance = sigma * sigma, .worst = error.worst, .systematic = error.bias};
}

// The sum of `terms` products for column i of a group, with its error. `additions`: 2 if each
// product is added in two pieces, else 1.
Uncertain mix_of_group(const GroupSums& sums, int i, std::int64_t terms, double additions,
                       StreamForm streams, const Numerics& numerics) {
  if (numerics.unit != SumUnit::fp32) {
    return mix_of_unit({sums.sum[i], sums.magnitude[i], sums.square[i]},
                       terms * static_cast<std::int64_t>(additions), streams, numerics);
  }
  const double product_error = numerics.product == Format::f32 ? kUnitF32 : 0;
  const double unit = unit_roundoff(numerics.accumulator);
  SumError added = mean_sum_error(terms, sums.sum[i], sums.magnitude[i], sums.square[i], numerics);
  added.sigma *= std::sqrt(additions);
  added.worst *= additions;
  const double squared_sums = largest_of_orders(numerics.chains, sums.orders.one()[i],
                                                sums.orders.two()[i], sums.orders.four()[i]);
  const double of_sum =
      std::max(added.sigma * added.sigma, additions * rounding_variance(unit) * squared_sums);
  return {.value = sums.sum[i],
          .variance = of_sum + rounding_variance(product_error) * sums.square[i],
          .worst = added.worst + product_error * sums.magnitude[i]};
}

// Adds the roundings of scaled streams. Each stream element has its own rounding.
void add_stream_roundings(const GroupSums& sums, int i, Format product, Uncertain& mix) {
  const OperandError error = scaled_operand_error(product);
  mix.variance += square(error.sigma) * sums.square[i];
  mix.worst += error.worst * sums.magnitude[i];
  mix.systematic += error.bias * std::abs(sums.sum[i]);
}

}  // namespace

MixWeights::MixWeights(const float* fn, int columns, std::int64_t depth, const Numerics& numerics,
                       WeightForm form, StreamForm streams)
    : columns_(columns), depth_(depth), numerics_(numerics), form_(form), streams_(streams) {
  const auto size = static_cast<std::size_t>(columns * depth);
  const int bits = form == WeightForm::two_bf16 ? 0 : dropped_bits(numerics.product);
  const bool truncated = numerics.product == Format::tf32_truncated;
  exact_.resize(size);
  if (bits > 0 || form == WeightForm::two_bf16) rounding_.resize(size);
  for (int c = 0; c < columns; ++c) {
    for (std::int64_t k = 0; k < depth; ++k) {
      const float weight = fn[c * depth + k];
      exact_[at(c, k)] = weight;
      if (form == WeightForm::two_bf16) rounding_[at(c, k)] = rounding_to_two_bf16(weight);
      if (bits == 0) continue;
      const OperandRounding rounded = round_operand(weight, bits, truncated);
      rounding_[at(c, k)] = rounded.error;
      if (!rounded.tie) continue;
      doubt_.resize(size);
      doubt_[at(c, k)] = static_cast<float>(unit_roundoff(numerics.product)) * weight;
    }
  }
}

std::size_t MixWeights::at(int column, std::int64_t k) const {
  return static_cast<std::size_t>((column / kGroup * depth_ + k) * kGroup + column % kGroup);
}

std::vector<Uncertain> MixWeights::mixes(const std::vector<double>& x, std::int64_t begin,
                                         std::int64_t end) const {
  return mixes(&x, 1, begin, end).front();
}

std::vector<std::vector<Uncertain>> MixWeights::mixes(const std::vector<double>* tokens,
                                                      std::int64_t count, std::int64_t begin,
                                                      std::int64_t end) const {
  const std::int64_t length = block_length(end - begin);
  const double additions = form_ == WeightForm::two_bf16 ? 2 : 1;
  std::vector<std::vector<Uncertain>> result(static_cast<std::size_t>(count));
  for (auto& mixes : result) mixes.resize(static_cast<std::size_t>(columns_));
  for (int group = 0; group < columns_; group += kGroup) {
    // All tokens use a block of weights before the next block, so that only the first token misses
    // the nearest cache.
    std::vector<GroupSums> sums(result.size());
    for (std::int64_t k = begin; k < end; k += length) {
      for (std::int64_t t = 0; t < count; ++t) {
        sums[t].add_block(&tokens[t][k], &exact_[at(group, k)], std::min(length, end - k));
      }
    }
    for (std::int64_t t = 0; t < count; ++t) {
      for (int i = 0; i < kGroup; ++i) {
        Uncertain& mix = result[t][group + i];
        mix = mix_of_group(sums[t], i, end - begin, additions, streams_, numerics_);
        if (streams_ == StreamForm::scaled) {
          add_stream_roundings(sums[t], i, numerics_.product, mix);
        }
      }
    }
  }
  for (std::int64_t t = 0; t < count; ++t) add_operand_roundings(tokens[t], begin, end, result[t]);
  return result;
}

void MixWeights::add_operand_roundings(const std::vector<double>& x, std::int64_t begin,
                                       std::int64_t end, std::vector<Uncertain>& result) const {
  if (rounding_.empty()) return;
  for (int c = 0; c < columns_; ++c) {
    double shift = 0;
    for (std::int64_t k = begin; k < end; ++k) shift += x[k] * rounding_[at(c, k)];
    result[c].shift = shift;
    if (doubt_.empty()) continue;
    for (std::int64_t k = begin; k < end; ++k) {
      const double tie = std::abs(x[k] * doubt_[at(c, k)]);
      result[c].variance += tie * tie;
      result[c].worst += tie;
    }
  }
}

std::vector<double> MixWeights::magnitudes(const std::vector<double>& x) const {
  std::vector<double> sums(columns_);
  for (std::int64_t k = 0; k < depth_; ++k) {
    if (x[k] == 0) continue;  // callers pass errors, most of which are 0
    for (int c = 0; c < columns_; ++c) sums[c] += std::abs(x[k] * exact_[at(c, k)]);
  }
  return sums;
}

}  // namespace plumb::reference
