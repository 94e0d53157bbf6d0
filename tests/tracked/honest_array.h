// SPDX-License-Identifier: Apache-2.0
//
// Arrays as a correct implementation computes them: fp32 throughout, sums in random order,
// functions with random errors within the declared ulp. They have the functions of tracked.h, so
// that one template serves as reference (with tracked arrays, which carry bounds) and as
// implementation.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "reference/matrix_error.h"
#include "reference/matrix_unit.h"
#include "reference/rounding.h"
#include "reference/tracked/elementwise.h"
#include "tests/support/random.h"

namespace plumb::reference {

class HonestArray {
 public:
  HonestArray(std::vector<float> numbers, TrackedSizes of, tests::Random& chance, double ulp)
      : values(std::move(numbers)), sizes(std::move(of)), random(&chance), function_ulp(ulp) {}

  std::vector<float> values;
  TrackedSizes sizes;
  tests::Random* random;
  double function_ulp;
};

inline HonestArray like(const HonestArray& a, TrackedSizes sizes) {
  const auto count = static_cast<std::size_t>(elements_of(sizes));
  return {std::vector<float>(count), std::move(sizes), *a.random, a.function_ulp};
}

HonestArray pairwise(const HonestArray& a, const HonestArray& b, const auto& function) {
  HonestArray result = like(a, broadcast_sizes(a.sizes, b.sizes));
  const BroadcastLines of_a = broadcast_lines(a.sizes, result.sizes);
  const BroadcastLines of_b = broadcast_lines(b.sizes, result.sizes);
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const std::size_t line = i / of_a.length, j = i % of_a.length;
    result.values[i] = function(a.values[of_a.first[line] + j * of_a.step],
                                b.values[of_b.first[line] + j * of_b.step]);
  }
  return result;
}

inline HonestArray operator+(const HonestArray& a, const HonestArray& b) {
  return pairwise(a, b, [](float x, float y) { return x + y; });
}
inline HonestArray operator-(const HonestArray& a, const HonestArray& b) {
  return pairwise(a, b, [](float x, float y) { return x - y; });
}
inline HonestArray operator*(const HonestArray& a, const HonestArray& b) {
  return pairwise(a, b, [](float x, float y) { return x * y; });
}
inline HonestArray operator/(const HonestArray& a, const HonestArray& b) {
  return pairwise(a, b, [](float x, float y) { return x / y; });
}
inline HonestArray constant(const HonestArray& a, double b) {
  HonestArray one = like(a, {});
  one.values[0] = static_cast<float>(b);
  return one;
}
inline HonestArray operator+(const HonestArray& a, double b) { return a + constant(a, b); }
inline HonestArray operator*(const HonestArray& a, double b) { return a * constant(a, b); }
inline HonestArray operator/(const HonestArray& a, double b) { return a / constant(a, b); }

// Function values with random errors within the declared ulp.
HonestArray function_of(HonestArray a, const auto& function) {
  for (float& value : a.values) {
    const double error = a.function_ulp * 2 * kUnitF32 * (2 * a.random->uniform() - 1);
    value = static_cast<float>(function(static_cast<double>(value)) * (1 + 0.8 * error));
  }
  return a;
}
inline HonestArray exp(HonestArray a) {
  return function_of(std::move(a), [](double x) { return std::exp(x); });
}
inline HonestArray sqrt(HonestArray a) {
  return function_of(std::move(a), [](double x) { return std::sqrt(x); });
}
inline HonestArray rsqrt(HonestArray a) {
  return function_of(std::move(a), [](double x) { return 1 / std::sqrt(x); });
}
inline HonestArray sigmoid(HonestArray a) {
  return function_of(std::move(a), [](double x) { return 1 / (1 + std::exp(-x)); });
}
inline HonestArray softplus(HonestArray a) {
  return function_of(std::move(a), [](double x) { return std::log1p(std::exp(x)); });
}

HonestArray folded(const HonestArray& a, std::size_t dimension, const auto& function) {
  const TrackedSplit split = split_at(a.sizes, dimension);
  TrackedSizes sizes = a.sizes;
  sizes[dimension] = 1;
  HonestArray result = like(a, sizes);
  std::vector<float> line(static_cast<std::size_t>(split.size));
  for (std::int64_t outer = 0; outer < split.outer; ++outer) {
    for (std::int64_t inner = 0; inner < split.inner; ++inner) {
      for (std::int64_t k = 0; k < split.size; ++k) {
        line[static_cast<std::size_t>(k)] =
            a.values[static_cast<std::size_t>((outer * split.size + k) * split.inner + inner)];
      }
      result.values[static_cast<std::size_t>(outer * split.inner + inner)] = function(line);
    }
  }
  return result;
}
// Sum in random order.
inline HonestArray sum(const HonestArray& a, std::size_t dimension) {
  return folded(a, dimension, [&](std::vector<float> line) {
    for (std::size_t i = line.size(); i > 1; --i) {
      std::swap(line[i - 1],
                line[static_cast<std::size_t>(a.random->below(static_cast<std::int64_t>(i)))]);
    }
    return std::accumulate(line.begin(), line.end(), 0.0F);
  });
}
inline HonestArray mean(const HonestArray& a, std::size_t dimension) {
  return sum(a, dimension) / static_cast<double>(a.sizes[dimension]);
}
inline HonestArray max(const HonestArray& a, std::size_t dimension) {
  return folded(a, dimension,
                [](const std::vector<float>& line) { return *std::ranges::max_element(line); });
}
inline HonestArray max(const HonestArray& a, const HonestArray& b) {
  return pairwise(a, b, [](float x, float y) { return std::max(x, y); });
}
inline HonestArray abs(HonestArray a) {
  for (float& value : a.values) value = std::abs(value);
  return a;
}
// Concatenates along the first dimension.
inline HonestArray joined(const std::vector<HonestArray>& parts, std::size_t) {
  HonestArray whole = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    whole.sizes[0] += parts[i].sizes[0];
    whole.values.insert(whole.values.end(), parts[i].values.begin(), parts[i].values.end());
  }
  return whole;
}
inline HonestArray rounded(HonestArray a, Format format) {
  for (float& value : a.values) value = static_cast<float>(nearest(format, value));
  return a;
}
// Dot product in the order of a kernel: contiguous chains, joined by a tree.
inline float honest_dot(const std::vector<float>& a, const std::vector<float>& b,
                        const Numerics& how) {
  const auto n = static_cast<std::int64_t>(a.size());
  std::vector<float> sums;
  for (int c = 0; c < how.chains; ++c) {
    const std::int64_t begin = n * c / how.chains, end = n * (c + 1) / how.chains;
    if (how.unit != SumUnit::fp32) {
      sums.push_back(matrix_sum(matrix_unit(how), a.data() + begin, b.data() + begin, end - begin));
      continue;
    }
    sums.push_back(0);
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      sums.back() += a[i] * b[i];
    }
  }
  for (std::size_t left = sums.size(); left > 1; left = (left + 1) / 2) {
    for (std::size_t i = 0; i < left / 2; ++i) sums[i] += sums[i + (left + 1) / 2];
  }
  return sums[0];
}
// Matrix product [.., m, k] x [k, n] with a random order of terms that is the same for all
// elements.
inline HonestArray matmul(const HonestArray& a, const HonestArray& b, const Numerics& how) {
  const auto k = static_cast<std::size_t>(b.sizes[0]), n = static_cast<std::size_t>(b.sizes[1]);
  std::vector<std::size_t> order(k);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = k; i > 1; --i) {
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(a.random->below(static_cast<std::int64_t>(i)))]);
  }
  TrackedSizes sizes = a.sizes;
  sizes.back() = b.sizes[1];
  HonestArray result = like(a, sizes);
  std::vector<float> row(k), column(k);
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    for (std::size_t t = 0; t < k; ++t) {
      row[t] = a.values[i / n * k + order[t]];
      column[t] = b.values[order[t] * n + i % n];
    }
    result.values[i] = honest_dot(row, column, how);
  }
  return result;
}
inline HonestArray reshaped(HonestArray a, TrackedSizes sizes) {
  a.sizes = std::move(sizes);
  return a;
}

}  // namespace plumb::reference
