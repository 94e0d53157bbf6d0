// SPDX-License-Identifier: Apache-2.0
//
// Right sparse MLA kernels in fp32: online softmax over blocks of candidates, in the orders and
// with the roundings of real kernels. Their results must lie within the reference's bounds.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/cache/kv_cache.h"
#include "reference/formats/bfloat16.h"
#include "reference/matrix_unit.h"
#include "tests/support/mla_test_problem.h"

namespace plumb::tests {

struct HonestKernel {
  bool bf16_probability = true;
  std::int64_t block = 64;
  std::int64_t chains = 1;  // chains of the dot product q.k
  std::int64_t splits = 1;
  bool reversed = false;        // order of candidates
  bool fused_exponent = false;  // exp2(fma(s, c, -m))
  // Matrix unit for q.k and p v; null: fp32, rounded to nearest.
  const reference::MatrixUnit* unit = nullptr;
};

using Vector = std::vector<float>;

struct HonestPartial {
  Vector out;     // [512], normalised
  float lse = 0;  // base 2
  float max = 0, sum = 0;
  Vector sums;  // [512], before normalisation
};

inline float exp2_f32(float x) { return static_cast<float>(std::exp2(double{x})); }
inline float log2_f32(float x) { return static_cast<float>(std::log2(double{x})); }
inline float round_probability(float p, bool to_bf16) {
  const std::uint16_t bits = reference::encode_bf16(p);
  return to_bf16 ? static_cast<float>(reference::decode_bf16(bits)) : p;
}

inline float dot(const float* a, const Vector& b, std::int64_t chains) {
  Vector sums(chains, 0.0f);
  for (std::int64_t d = 0; d < std::ssize(b); ++d) sums[d % chains] += a[d] * b[d];
  for (std::int64_t half = chains / 2; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

inline float score(const float* q, const Vector& key, const HonestKernel& how) {
  if (how.unit == nullptr) return dot(q, key, how.chains);
  return reference::matrix_sum(*how.unit, q, key.data(), std::ssize(key));
}

// sums += p v for the keys [begin, begin + p.size()).
inline void add_values(const Vector& p, const std::vector<Vector>& keys, std::int64_t begin,
                       const HonestKernel& how, Vector& sums) {
  if (how.unit == nullptr) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      for (std::int64_t d = 0; d < reference::kMlaDim; ++d) sums[d] += p[i] * keys[begin + i][d];
    }
    return;
  }
  Vector column(p.size());
  for (std::int64_t d = 0; d < reference::kMlaDim; ++d) {
    for (std::size_t i = 0; i < p.size(); ++i) column[i] = keys[begin + i][d];
    sums[d] = reference::matrix_sum(*how.unit, p.data(), column.data(), std::ssize(p), sums[d]);
  }
}

// Attention over the candidates `keys` [count, 512] of one split.
inline HonestPartial attend(const float* q, const std::vector<Vector>& keys, float sm_scale,
                            const HonestKernel& how) {
  const float c = sm_scale * 1.44269504f;
  HonestPartial state;
  state.max = -1e30f;
  state.sums.assign(reference::kMlaDim, 0.0f);
  for (std::int64_t begin = 0; begin < std::ssize(keys); begin += how.block) {
    const std::int64_t end = std::min<std::int64_t>(begin + how.block, std::ssize(keys));
    Vector scores;
    float top = state.max;
    for (std::int64_t i = begin; i < end; ++i) {
      scores.push_back(score(q, keys[i], how));
      top = std::max(top, scores.back() * c);
    }
    const float rescale = exp2_f32(state.max - top);
    state.max = top;
    state.sum *= rescale;
    for (float& sum : state.sums) sum *= rescale;
    Vector probabilities;
    for (const float s : scores) {
      const float p = exp2_f32(how.fused_exponent ? std::fma(s, c, -top) : s * c - top);
      state.sum += p;
      probabilities.push_back(round_probability(p, how.bf16_probability));
    }
    add_values(probabilities, keys, begin, how, state.sums);
  }
  state.lse =
      state.sum == 0 ? -std::numeric_limits<float>::infinity() : log2_f32(state.sum) + state.max;
  const float inverse = state.sum == 0 ? 0 : 1 / state.sum;
  for (const float sum : state.sums) state.out.push_back(sum * inverse);
  return state;
}

struct HonestRow {
  std::vector<std::uint16_t> out;  // bf16 [512]
  float lse = 0, max = 0;          // natural logarithm
};

inline HonestRow combine(const std::vector<HonestPartial>& partials, const float* sink) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float top = -kInfinity;
  for (const HonestPartial& partial : partials) top = std::max(top, partial.lse);
  if (top == -kInfinity) top = 0;
  float sum = 0;
  for (const HonestPartial& partial : partials) sum += exp2_f32(partial.lse - top);
  float total = sum == 0 ? kInfinity : log2_f32(sum) + top;
  HonestRow row;
  row.lse = total / kLog2E;
  if (sink != nullptr && total != kInfinity) {
    total += log2_f32(1 + exp2_f32(*sink * kLog2E - total));
  } else if (sink != nullptr) {
    total = *sink == -kInfinity ? kInfinity : *sink * kLog2E;
  }
  Vector out(reference::kMlaDim, 0.0f);
  for (const HonestPartial& partial : partials) {
    const float weight = exp2_f32(partial.lse - total);
    for (std::int64_t d = 0; d < reference::kMlaDim; ++d) out[d] += weight * partial.out[d];
  }
  for (const float value : out) row.out.push_back(reference::encode_bf16(value));
  return row;
}

inline HonestRow finish(const HonestPartial& state, const float* sink) {
  constexpr float kLog2E = 1.44269504f;
  const float joined = state.sum + (sink == nullptr ? 0 : exp2_f32(*sink * kLog2E - state.max));
  HonestRow row;
  row.lse = state.sum == 0 ? std::numeric_limits<float>::infinity()
                           : static_cast<float>(std::log(double{state.sum})) + state.max / kLog2E;
  row.max = state.sum == 0 ? -std::numeric_limits<float>::infinity() : state.max / kLog2E;
  const float inverse = state.sum == 0 ? 0 : 1 / joined;
  for (const float sum : state.sums) row.out.push_back(reference::encode_bf16(sum * inverse));
  return row;
}

// Attention as in kernels written in Triton: base e, the rope part is added separately to the
// score, and the sink can raise the maximum.
inline HonestRow attend_natural(const float* q, const std::vector<Vector>& keys, float sm_scale,
                                const float* sink, const HonestKernel& how) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto exp_f32 = [](float x) { return static_cast<float>(std::exp(double{x})); };
  float max = std::numeric_limits<float>::lowest(), sum = 0;
  Vector sums(reference::kMlaDim, 0.0f);
  for (std::int64_t begin = 0; begin < std::ssize(keys); begin += how.block) {
    const std::int64_t end = std::min<std::int64_t>(begin + how.block, std::ssize(keys));
    Vector scores;
    float top = max;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto rope = keys[i].end() - reference::kMlaRope;
      const float near = dot(q, {keys[i].begin(), rope}, how.chains);
      const float far = dot(q + (rope - keys[i].begin()), {rope, keys[i].end()}, how.chains);
      scores.push_back((near + far) * sm_scale);
      top = std::max(top, scores.back());
    }
    const float rescale = exp_f32(max - top);
    max = top;
    sum *= rescale;
    for (float& value : sums) value *= rescale;
    for (std::int64_t i = begin; i < end; ++i) {
      const float p = exp_f32(scores[i - begin] - top);
      sum += p;
      const float rounded = round_probability(p, how.bf16_probability);
      for (std::int64_t d = 0; d < reference::kMlaDim; ++d) sums[d] += rounded * keys[i][d];
    }
  }
  HonestRow row;
  row.max = sum == 0 ? -kInfinity : max;
  row.lse = sum == 0 ? kInfinity : max + static_cast<float>(std::log(double{sum}));
  const float top = std::max(max, *sink), factor = exp_f32(max - top);
  const float joined = sum * factor + exp_f32(*sink - top);
  for (const float value : sums) {
    row.out.push_back(reference::encode_bf16(joined > 0 ? value * factor / joined : 0));
  }
  return row;
}

// Splits the candidates into consecutive ranges, as evenly as blocks of `how.block` allow.
inline std::vector<HonestPartial> attend_split(const float* q, std::vector<Vector> keys,
                                               float sm_scale, const HonestKernel& how) {
  if (how.reversed) std::reverse(keys.begin(), keys.end());
  const std::int64_t blocks = (std::ssize(keys) + how.block - 1) / how.block;
  std::vector<HonestPartial> partials;
  for (std::int64_t split = 0; split < how.splits; ++split) {
    const std::int64_t begin = blocks * split / how.splits * how.block;
    const std::int64_t end =
        std::min<std::int64_t>(blocks * (split + 1) / how.splits * how.block, std::ssize(keys));
    const std::vector<Vector> part(keys.begin() + begin, keys.begin() + std::max(begin, end));
    partials.push_back(attend(q, part, sm_scale, how));
  }
  return partials;
}

}  // namespace plumb::tests
