// SPDX-License-Identifier: Apache-2.0
//
// The lightning indexer's logits in fp32 arithmetic, in several summation orders, and random
// inputs. Written independently of the reference and of the kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/formats/bfloat16.h"
#include "reference/indexer/fp8_mqa_logits.h"
#include "reference/matrix_unit.h"
#include "tests/support/random.h"

namespace plumb::fp32 {

using reference::decode_bf16;
using reference::decode_e4m3;
using reference::Dialect;
using reference::encode_bf16;
using reference::encode_e4m3;
using reference::Fp8MqaLogits;
using reference::kSm90Bf16;
using reference::matrix_sum;
using reference::MatrixUnit;

// Random inputs of a prefill of two rows, quantised like real ones.
struct RandomRows {
  static constexpr std::int64_t kRows = 2, kKeys = 64;
  std::int64_t heads, dim;
  std::vector<std::uint8_t> q, k;
  std::vector<float> scales, weights;
  std::vector<std::int32_t> starts = {0, 0}, ends = {kKeys, kKeys};

  RandomRows(std::uint64_t seed, std::int64_t head_count, std::int64_t dims)
      : heads(head_count), dim(dims) {
    tests::Random random(seed);
    for (std::int64_t i = 0; i < kRows * heads; ++i) add_vector(random, q);
    for (std::int64_t i = 0; i < kKeys; ++i) {
      add_vector(random, k);
      scales.push_back(static_cast<float>(std::exp(random.normal())));
    }
    for (std::int64_t i = 0; i < kRows * heads; ++i) {
      weights.push_back(static_cast<float>(random.normal() * std::exp(random.normal())));
    }
  }

  Fp8MqaLogits inputs() const {
    return {.q = q.data(),
            .k = k.data(),
            .k_scale = scales.data(),
            .weights = weights.data(),
            .starts = starts.data(),
            .ends = ends.data(),
            .rows = kRows,
            .keys = kKeys,
            .heads = heads,
            .dim = dim,
            .columns = kKeys};
  }

 private:
  void add_vector(tests::Random& random, std::vector<std::uint8_t>& to) const {
    const bool spike = random.below(8) == 0;
    const double sigma = spike ? 0.05 : 120;
    for (std::int64_t d = 0; d < dim; ++d) {
      const double value = spike && d == 3 ? 448 : sigma * random.normal();
      to.push_back(encode_e4m3(value, Dialect::e4m3fn));
    }
  }
};

// One of the ways in which a right kernel may compute the logits.
struct Manner {
  std::string name;
  int dot_chains, head_chains;
  bool backwards, scale_inside, fused;
  const MatrixUnit* unit = nullptr;  // matrix unit for dot products; null: fp32, rounded to nearest
};

inline float add_up(const std::vector<float>& terms, int chains) {
  std::vector<float> sums(static_cast<std::size_t>(chains), 0.0F);
  for (std::size_t i = 0; i < terms.size(); ++i) sums[i % sums.size()] += terms[i];
  for (std::size_t left = sums.size(); left > 1; left = (left + 1) / 2) {
    for (std::size_t i = 0; i < left / 2; ++i) sums[i] += sums[i + (left + 1) / 2];
  }
  return sums[0];
}

inline float dot(const std::uint8_t* q, const std::uint8_t* k, std::int64_t dim,
                 const Manner& manner) {
  if (manner.unit != nullptr) {
    std::vector<float> left, right;
    for (std::int64_t d = 0; d < dim; ++d) {
      left.push_back(static_cast<float>(decode_e4m3(q[d], Dialect::e4m3fn)));
      right.push_back(static_cast<float>(decode_e4m3(k[d], Dialect::e4m3fn)));
    }
    return matrix_sum(*manner.unit, left.data(), right.data(), dim);
  }
  std::vector<float> products;
  for (std::int64_t d = 0; d < dim; ++d) {
    products.push_back(static_cast<float>(decode_e4m3(q[d], Dialect::e4m3fn) *
                                          decode_e4m3(k[d], Dialect::e4m3fn)));
  }
  if (manner.backwards) std::reverse(products.begin(), products.end());
  return add_up(products, manner.dot_chains);
}

inline float honest_logit(const RandomRows& data, std::int64_t row, std::int64_t key,
                          const Manner& manner) {
  std::vector<float> terms;
  float fused = 0;
  for (std::int64_t head = 0; head < data.heads; ++head) {
    const std::int64_t vector = row * data.heads + head;
    float score = dot(&data.q[vector * data.dim], &data.k[key * data.dim], data.dim, manner);
    if (manner.scale_inside) score *= data.scales[key];
    score = std::max(score, 0.0F);
    terms.push_back(data.weights[vector] * score);
    fused = std::fma(data.weights[vector], score, fused);
  }
  const float sum = manner.fused ? fused : add_up(terms, manner.head_chains);
  return manner.scale_inside ? sum : sum * data.scales[key];
}

inline const Manner kScaledKeyManner{"one chain each, heads in eight", 1, 8, false, false, false};

inline float logit_of_scaled_key(const RandomRows& data, std::int64_t row, std::int64_t key,
                                 bool in_unit, const Manner& manner = kScaledKeyManner) {
  std::vector<float> scaled;
  for (std::int64_t d = 0; d < data.dim; ++d) {
    const auto code = static_cast<float>(decode_e4m3(data.k[key * data.dim + d], Dialect::e4m3fn));
    const float x = code * data.scales[key];
    scaled.push_back(in_unit ? static_cast<float>(decode_bf16(encode_bf16(x))) : x);
  }
  std::vector<float> terms;
  for (std::int64_t head = 0; head < data.heads; ++head) {
    std::vector<float> query;
    for (std::int64_t d = 0; d < data.dim; ++d) {
      const std::uint8_t code = data.q[(row * data.heads + head) * data.dim + d];
      query.push_back(static_cast<float>(decode_e4m3(code, Dialect::e4m3fn)));
    }
    float score = 0;
    if (in_unit) {
      score = matrix_sum(kSm90Bf16, query.data(), scaled.data(), data.dim);
    } else {
      for (std::int64_t d = 0; d < data.dim; ++d) query[d] *= scaled[d];
      if (manner.backwards) std::reverse(query.begin(), query.end());
      score = add_up(query, manner.dot_chains);
    }
    terms.push_back(data.weights[row * data.heads + head] * std::max(score, 0.0F));
  }
  return add_up(terms, manner.head_chains);
}

}  // namespace plumb::fp32
