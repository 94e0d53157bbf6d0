// SPDX-License-Identifier: Apache-2.0
#include "cases/fill.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace plumb::cases {

namespace {

// A bf16 or fp32 element from a double, nearest even.
void store(HostTensor& tensor, std::int64_t element, double value) {
  const auto single = static_cast<float>(value);
  if (tensor.spec().dtype == Dtype::f32) {
    tensor.data<float>()[element] = single;
    return;
  }
  const auto bits = std::bit_cast<std::uint32_t>(single);
  const bool nan = std::isnan(value);
  const std::uint32_t rounded = nan ? 0x7fc00000u : bits + 0x7fffu + ((bits >> 16) & 1u);
  tensor.data<std::uint16_t>()[element] = static_cast<std::uint16_t>(rounded >> 16);
}

double dead_value(DeadRows how) {
  switch (how) {
    case DeadRows::nan: return std::numeric_limits<double>::quiet_NaN();
    case DeadRows::infinity: return std::numeric_limits<double>::infinity();
    case DeadRows::huge: return 1e30;
    default: return 0;
  }
}

// 2^-10 .. 2^10 in steps of an eighth of a binade: about 1e-3 .. 1e3, and exact.
double row_scale(std::uint64_t seed, std::int64_t row) {
  const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(row));
  const auto exponent = static_cast<int>(bits % 20) - 10;
  return std::ldexp(1.0 + static_cast<double>((bits >> 32) % 8) / 8, exponent);
}

}  // namespace

std::string_view name_of(Fill fill) {
  switch (fill) {
    case Fill::exact: return "exact";
    case Fill::real: return "real";
    case Fill::adversarial: return "adversarial";
  }
  return "?";
}

std::string_view name_of(DeadRows dead) {
  switch (dead) {
    case DeadRows::zero: return "zero";
    case DeadRows::nan: return "nan";
    case DeadRows::infinity: return "infinity";
    case DeadRows::huge: return "huge";
    case DeadRows::foreign: return "foreign";
  }
  return "?";
}

std::uint64_t seed_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

// The finaliser of splitmix64.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t mix(std::uint64_t seed, std::uint64_t salt) {
  return random_bits(seed ^ 0x6a09e667f3bcc909u, salt);
}

double uniform(std::uint64_t seed, std::uint64_t counter) {
  return static_cast<double>(random_bits(seed, counter) >> 11) * 0x1p-53;
}

// Sum of eight 16-bit integers: near enough to a normal distribution, and exact.
double normal(std::uint64_t seed, std::uint64_t counter) {
  const std::uint64_t a = random_bits(seed, 2 * counter), b = random_bits(seed, 2 * counter + 1);
  std::int64_t sum = 0;
  for (int shift = 0; shift < 64; shift += 16) {
    sum += static_cast<std::int64_t>((a >> shift) & 0xffff) +
           static_cast<std::int64_t>((b >> shift) & 0xffff);
  }
  constexpr double kMean = 8 * 65535 / 2.0;
  constexpr double kInverseDeviation = 1.8688123650118534e-05;  // 1 / sqrt(8 (2^32 - 1) / 12)
  return (static_cast<double>(sum) - kMean) * kInverseDeviation;
}

std::int64_t integer(std::uint64_t seed, std::uint64_t counter, std::int64_t least,
                     std::int64_t most) {
  const auto span = static_cast<std::uint64_t>(most - least) + 1;
  return least + static_cast<std::int64_t>(random_bits(seed, counter) % span);
}

void fill_real(HostTensor& tensor, std::int64_t begin, std::int64_t end, std::uint64_t seed,
               const RealFill& how) {
  const std::int64_t columns = tensor.columns();
  const std::uint64_t scales = mix(seed, 1), channels = mix(seed, 2);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::uint64_t stream = mix(seed, 16 + static_cast<std::uint64_t>(row));
    const double scale = how.scale * (how.vary_rows ? row_scale(scales, row) : 1);
    for (std::int64_t i = 0; i < columns; ++i) {
      const auto column = static_cast<std::uint64_t>(i);
      const bool outlier = how.outliers && random_bits(channels, column) % 64 == 0;
      const double value = normal(stream, column) * scale * (outlier ? 16 : 1);
      store(tensor, tensor.row_offset(row) + i, value);
    }
  }
}

void fill_integers(HostTensor& tensor, std::int64_t begin, std::int64_t end, std::uint64_t seed,
                   std::int64_t most) {
  const std::int64_t columns = tensor.columns();
  for (std::int64_t row = begin; row < end; ++row) {
    const std::uint64_t stream = mix(seed, 16 + static_cast<std::uint64_t>(row));
    for (std::int64_t i = 0; i < columns; ++i) {
      std::int64_t value = integer(stream, static_cast<std::uint64_t>(i), -most, most);
      if (i == 0 && value == 0) value = most;
      store(tensor, tensor.row_offset(row) + i, static_cast<double>(value));
    }
  }
}

void fill_dead(HostTensor& tensor, std::int64_t begin, std::int64_t end, DeadRows how) {
  if (how == DeadRows::foreign) return;
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t i = 0; i < tensor.columns(); ++i) {
      store(tensor, tensor.row_offset(row) + i, dead_value(how));
    }
  }
}

void paint_gaps(HostTensor& tensor) {
  constexpr std::uint16_t kNaN = 0x7fc0;
  for (std::int64_t row = 0; row + 1 < tensor.rows(); ++row) {
    std::fill(tensor.row<std::uint16_t>(row) + tensor.columns(), tensor.row<std::uint16_t>(row + 1),
              kNaN);
  }
}

}  // namespace plumb::cases
