// SPDX-License-Identifier: Apache-2.0
#include "cases/ops/indexer/indexer_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

using reference::Dialect;
using Codes = std::span<std::uint8_t>;

std::uint64_t counter(std::int64_t i) { return static_cast<std::uint64_t>(i); }

void write_integers(Codes codes, Dialect dialect, std::uint64_t seed) {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = reference::encode_e4m3(static_cast<double>(integer(seed, i, -2, 2)), dialect);
  }
}

// Quantises `values` under a power of two, as engines quantise a block of activations. Returns that
// scale.
double write_quantised(Codes codes, Dialect dialect, const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  int exponent = 0;
  std::frexp(most / reference::e4m3_quantisation_max(dialect), &exponent);
  const double scale = std::ldexp(1.0, exponent);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = reference::encode_e4m3(values[i] / scale, dialect);
  }
  return scale;
}

// All vectors of a step have the same outlier channels. Another step has other ones.
double write_real(Codes codes, Dialect dialect, std::uint64_t seed, std::uint64_t channels) {
  const bool spike = random_bits(seed, codes.size()) % 16 == 0;
  std::vector<double> values(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const bool outlier = random_bits(channels, i) % 32 == 0;
    values[i] = normal(seed, i) * (outlier ? 8 : 1);
  }
  if (spike) values[random_bits(seed, codes.size() + 1) % codes.size()] = 0x1p17;
  return write_quantised(codes, dialect, values);
}

// A random code that is a number. Half of the codes are special: zeros, subnormals, the largest.
std::uint8_t number_code(Dialect dialect, std::uint64_t bits) {
  constexpr std::array<std::uint8_t, 8> kSpecial = {0x00, 0x01, 0x07, 0x08, 0x7e, 0x80, 0x87, 0xfe};
  const auto code = static_cast<std::uint8_t>(bits & 0x100 ? kSpecial[bits & 7] : bits & 0xff);
  const bool number = !std::isnan(reference::decode_e4m3(code, dialect));
  return number ? code : static_cast<std::uint8_t>(0);
}

void write_adversarial(Codes codes, Dialect dialect, std::uint64_t seed, std::int64_t style) {
  const std::uint8_t most = reference::e4m3_max_code(dialect);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::uint64_t bits = random_bits(seed, i);
    switch (style % 5) {
      case 0: codes[i] = number_code(dialect, bits); break;
      case 1: codes[i] = most; break;
      case 2: codes[i] = 0; break;
      case 3: codes[i] = number_code(dialect, bits % 7 == 0 ? 0x105 : bits & 7); break;
      default: codes[i] = number_code(dialect, random_bits(17, i)); break;
    }
  }
}

double exact_weight(std::uint64_t seed, std::int64_t head) {
  const auto weight = static_cast<double>(integer(seed, counter(head), -3, 3));
  return weight == 0 ? 1 : weight;
}

double adversarial_weight(std::uint64_t seed, std::int64_t head) {
  constexpr std::array kWeights = {0.0, -1.0, 0x1p20, 0x1p-40, -0x1p-3, 3.0};
  return kWeights[random_bits(seed, counter(head)) % kWeights.size()] * (1 + uniform(seed, 7));
}

void fill_weights(const Step& step, float* weights, std::int64_t heads, std::uint64_t seed) {
  constexpr double kScale = 1 / 90.509667991878084;  // 128^-0.5 * 64^-0.5
  for (std::int64_t head = 0; head < heads; ++head) {
    double weight = 0;
    switch (step.fill) {
      case Fill::exact: weight = exact_weight(seed, head); break;
      case Fill::adversarial: weight = adversarial_weight(seed, head); break;
      case Fill::real: {
        const auto exponent = static_cast<int>(integer(mix(seed, 1), counter(head), -6, 2));
        weight = kScale * std::ldexp(normal(seed, counter(head)), exponent);
      }
    }
    weights[head] = static_cast<float>(weight);
  }
}

void fill_dead_codes(HostTensor& q, std::int64_t begin, DeadRows how, Dialect dialect) {
  std::uint8_t code = 0;
  switch (how) {
    case DeadRows::foreign: return;
    case DeadRows::zero: code = 0; break;
    case DeadRows::nan: code = reference::e4m3_nan_code(dialect); break;
    case DeadRows::infinity:
    case DeadRows::huge: code = reference::e4m3_max_code(dialect); break;
  }
  const auto offset = static_cast<std::size_t>(begin * q.columns());
  std::fill(q.bytes().begin() + static_cast<std::ptrdiff_t>(offset), q.bytes().end(),
            std::byte{code});
}

}  // namespace

float KeyFill::write(std::int64_t position, std::uint8_t* to) const {
  const Codes codes(to, static_cast<std::size_t>(dim));
  const std::uint64_t own = mix(seed, counter(position));
  const double power = std::ldexp(1.0, static_cast<int>(integer(own, counter(dim) + 2, -3, 3)));
  if (step.fill == Fill::exact) {
    write_integers(codes, dialect, own);
    return static_cast<float>(power);
  }
  if (step.fill == Fill::adversarial) {
    write_adversarial(codes, dialect, own, position);
    return static_cast<float>(0x1p-12 * power);
  }
  const double mantissa = position % 2 == 0 ? 1 : 1 + uniform(own, counter(dim) + 3);
  const double scale = write_real(codes, dialect, own, mix(seed, ~std::uint64_t{0}));
  return static_cast<float>(scale * power * mantissa);
}

void fill_queries(const Step& step, std::int64_t live, Dialect dialect, HostTensor& q,
                  HostTensor& weights) {
  const std::int64_t heads = weights.columns();
  const auto dim = static_cast<std::size_t>(q.columns());
  const std::uint64_t seed = mix(step.seed, 20), channels = mix(step.seed, 21);
  for (std::int64_t row = 0; row < live; ++row) {
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::int64_t vector = row * heads + head;
      const Codes codes(q.row<std::uint8_t>(vector), dim);
      const std::uint64_t own = mix(seed, counter(vector));
      switch (step.fill) {
        case Fill::exact: write_integers(codes, dialect, own); break;
        case Fill::real: write_real(codes, dialect, own, channels); break;
        case Fill::adversarial: write_adversarial(codes, dialect, own, row + head % 2); break;
      }
    }
  }
  fill_dead_codes(q, live * heads, step.dead_rows, dialect);
  fill_head_weights(step, live, weights);
}

void fill_head_weights(const Step& step, std::int64_t live, HostTensor& weights) {
  const std::uint64_t seed = mix(step.seed, 22);
  for (std::int64_t row = 0; row < live; ++row) {
    fill_weights(step, weights.row<float>(row), weights.columns(), mix(seed, counter(row)));
  }
  fill_dead(weights, live, weights.rows(), step.dead_rows);
}

Formula padded_columns(const Formula& columns) {
  constexpr std::int64_t kMultiple = 256;
  return div_up(columns, kMultiple) * kMultiple;
}

double logits_cost(std::int64_t rows, std::int64_t columns, std::int64_t heads, std::int64_t dim) {
  constexpr double kProduct = 0.16, kDecode = 1.6, kThread = 20;
  constexpr std::int64_t kColumnsOfBlock = 128;
  const std::int64_t blocks = rows * ((columns + kColumnsOfBlock - 1) / kColumnsOfBlock);
  return kProduct * static_cast<double>(rows * columns * heads * dim) +
         kDecode * static_cast<double>((rows * columns + blocks * heads) * dim) +
         (kThread + kBarrierCost) * static_cast<double>(blocks * kColumnsOfBlock);
}

double logits_multiply_adds(std::int64_t rows, std::int64_t columns, std::int64_t heads,
                            std::int64_t dim) {
  return static_cast<double>(rows * columns * heads * (dim + 1));
}

double logits_reference_cost(std::int64_t rows, std::int64_t columns, std::int64_t heads,
                             std::int64_t dim) {
  constexpr double kProduct = 0.5, kScore = 40;
  return static_cast<double>(rows * columns * heads) *
         (kScore + kProduct * static_cast<double>(dim));
}

}  // namespace plumb::cases
