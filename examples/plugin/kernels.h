// SPDX-License-Identifier: Apache-2.0
//
// Two ops as plain functions on memory, so that no GPU is needed. plumb runs such a function when
// the simulated stream reaches it; it reads and writes device memory like a kernel.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

inline float from_bf16(std::uint16_t value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

// Rounds to nearest, ties to even.
inline std::uint16_t to_bf16(float value) {
  if (std::isnan(value)) return 0x7fc0;
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits += 0x7fff + (bits >> 16 & 1);
  return static_cast<std::uint16_t>(bits >> 16);
}

// out = x / sqrt(mean(x^2) + eps) * weight, in fp32 with one sequential sum. keep = false: x counts
// as zeros.
inline void rms_norm_row(const std::uint16_t* x, const std::uint16_t* weight, std::uint16_t* out,
                         std::int64_t hidden, float eps, bool keep) {
  float sum = 0;
  for (std::int64_t i = 0; keep && i < hidden; ++i) sum += from_bf16(x[i]) * from_bf16(x[i]);
  const float scale = 1 / std::sqrt(sum / static_cast<float>(hidden) + eps);
  for (std::int64_t i = 0; i < hidden; ++i) {
    out[i] = to_bf16((keep ? from_bf16(x[i]) : 0) * scale * from_bf16(weight[i]));
  }
}

// Integer key of a float in the order -NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN.
inline std::uint32_t order_key(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// Indices of the k largest of `length` logits, the largest first. If length <= k: all, in order,
// then -1.
inline void top_k_row(const float* logits, std::int64_t stride, std::int64_t length, std::int64_t k,
                      std::int32_t* indices) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(length));
  std::iota(order.begin(), order.end(), 0);
  const auto larger = [&](std::int32_t a, std::int32_t b) {
    const std::uint32_t key_a = order_key(logits[a * stride]),
                        key_b = order_key(logits[b * stride]);
    return key_a != key_b ? key_a > key_b : a < b;
  };
  if (length > k) std::partial_sort(order.begin(), order.begin() + k, order.end(), larger);
  for (std::int64_t i = 0; i < k; ++i) indices[i] = i < length ? order[i] : -1;
}
