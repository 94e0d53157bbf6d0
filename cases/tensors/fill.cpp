// SPDX-License-Identifier: Apache-2.0
#include "cases/tensors/fill.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "reference/bound.h"

namespace plumb::cases {

namespace {

// Rounds a double to fp32 and then to bf16, to nearest even.
std::uint16_t to_bf16(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const std::uint32_t rounded =
      std::isnan(value) ? 0x7fc00000u : bits + 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>(rounded >> 16);
}

// Calls fill(row, put) for rows [begin, end) of a bf16 or f32 tensor, on all cores. put(column,
// value) stores a value.
void for_each_row(HostTensor& tensor, std::int64_t begin, std::int64_t end, const auto& fill) {
  constexpr std::int64_t kElementsWorthAThread = 1 << 16;
  const bool single = tensor.spec().dtype == Dtype::f32;
  const std::int64_t piece =
      kElementsWorthAThread / std::max<std::int64_t>(tensor.columns(), 1) + 1;
  reference::parallel_for(end - begin, piece, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = begin + first; row < begin + last; ++row) {
      if (single) {
        auto* to = tensor.row<float>(row);
        fill(row, [to](std::int64_t i, double value) { to[i] = static_cast<float>(value); });
      } else {
        auto* to = tensor.row<std::uint16_t>(row);
        fill(row, [to](std::int64_t i, double value) { to[i] = to_bf16(value); });
      }
    }
  });
}

// What padding holds if it is neither `nan` nor `foreign`.
double dead_value(DeadRows how) {
  switch (how) {
    case DeadRows::infinity: return std::numeric_limits<double>::infinity();
    case DeadRows::huge: return 1e30;
    default: return 0;
  }
}

// Arithmetic and conversions change the bits of a signalling NaN.
void fill_signalling(HostTensor& tensor, std::int64_t begin, std::int64_t end) {
  const bool f32 = tensor.spec().dtype == Dtype::f32;
  for (std::int64_t row = begin; row < end; ++row) {
    if (f32) {
      std::fill_n(tensor.row<std::uint32_t>(row), tensor.columns(), 0x7fa5'0005u);
    } else {
      std::fill_n(tensor.row<std::uint16_t>(row), tensor.columns(), std::uint16_t{0x7fa5});
    }
  }
}

// A scale between 2^-10 and 2^10 (about 1e-3 to 1e3) in steps of an eighth of a binade, so that it
// has few bits and products with it stay exact.
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

// Sum of eight 16-bit integers: close enough to a normal distribution, and computed exactly. The
// sums of the lower and of the upper 32-bit half run in one 64-bit word.
double normal(std::uint64_t seed, std::uint64_t counter) {
  constexpr std::uint64_t kEveryOther = 0x0000ffff0000ffffu;
  const std::uint64_t a = random_bits(seed, 2 * counter), b = random_bits(seed, 2 * counter + 1);
  const std::uint64_t pairs =
      (a & kEveryOther) + ((a >> 16) & kEveryOther) + (b & kEveryOther) + ((b >> 16) & kEveryOther);
  const auto sum = static_cast<std::int64_t>((pairs & 0xffffffffu) + (pairs >> 32));
  constexpr double kMean = 8 * 65535 / 2.0;
  constexpr double kInverseDeviation = 1.8688123650118534e-05;  // 1 / sqrt(8 (2^32 - 1) / 12)
  return (static_cast<double>(sum) - kMean) * kInverseDeviation;
}

std::int64_t integer(std::uint64_t seed, std::uint64_t counter, std::int64_t least,
                     std::int64_t most) {
  const auto span = static_cast<std::uint64_t>(most - least) + 1;
  return least + static_cast<std::int64_t>(random_bits(seed, counter) % span);
}

std::int32_t negative_index(const Step& step, std::uint64_t counter) {
  constexpr std::int32_t kNegative[] = {-1, -2, -64, std::numeric_limits<std::int32_t>::min()};
  if (step.fill != Fill::adversarial) return -1;
  return kNegative[random_bits(mix(step.seed, 31), counter) % std::size(kNegative)];
}

void fill_real(HostTensor& tensor, std::int64_t begin, std::int64_t end, std::uint64_t seed,
               const RealFill& how) {
  const std::int64_t columns = tensor.columns();
  const std::uint64_t scales = mix(seed, 1), channels = mix(seed, 2);
  std::vector<double> factors(static_cast<std::size_t>(columns), 1);
  for (std::int64_t i = 0; how.outliers && i < columns; ++i) {
    if (random_bits(channels, static_cast<std::uint64_t>(i)) % 64 == 0) factors[i] = 16;
  }
  for_each_row(tensor, begin, end, [&](std::int64_t row, const auto& put) {
    const std::uint64_t stream = mix(seed, 16 + static_cast<std::uint64_t>(row));
    const double scale = how.scale * (how.vary_rows ? row_scale(scales, row) : 1);
    for (std::int64_t i = 0; i < columns; ++i) {
      put(i, normal(stream, static_cast<std::uint64_t>(i)) * scale * factors[i]);
    }
  });
}

void fill_integers(HostTensor& tensor, std::int64_t begin, std::int64_t end, std::uint64_t seed,
                   std::int64_t most) {
  for_each_row(tensor, begin, end, [&](std::int64_t row, const auto& put) {
    const std::uint64_t stream = mix(seed, 16 + static_cast<std::uint64_t>(row));
    for (std::int64_t i = 0; i < tensor.columns(); ++i) {
      const std::int64_t value = integer(stream, static_cast<std::uint64_t>(i), -most, most);
      put(i, static_cast<double>(i == 0 && value == 0 ? most : value));
    }
  });
}

void fill_dead(HostTensor& tensor, std::int64_t begin, std::int64_t end, DeadRows how) {
  if (how == DeadRows::foreign) return;
  if (how == DeadRows::nan) return fill_signalling(tensor, begin, end);
  const double value = dead_value(how);
  for_each_row(tensor, begin, end, [&](std::int64_t, const auto& put) {
    for (std::int64_t i = 0; i < tensor.columns(); ++i) put(i, value);
  });
}

void paint_gaps(HostTensor& tensor) {
  constexpr std::uint16_t kNaN = 0x7fc0;
  for (std::int64_t row = 0; row + 1 < tensor.rows(); ++row) {
    std::fill(tensor.row<std::uint16_t>(row) + tensor.columns(), tensor.row<std::uint16_t>(row + 1),
              kNaN);
  }
}

}  // namespace plumb::cases
