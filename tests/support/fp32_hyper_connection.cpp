// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fp32_hyper_connection.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

namespace plumb::fp32 {

namespace {

constexpr int kStreams = 4, kMixes = 24;
constexpr float kLog2E = 1.44269504088896340736F;

float exp2(float x) { return static_cast<float>(std::exp2(static_cast<double>(x))); }
float rsqrt(float x) { return static_cast<float>(1 / std::sqrt(static_cast<double>(x))); }
float sigmoid(float z) { return 1 / (1 + exp2(-z * kLog2E)); }

float operand(float x, reference::Format format) {
  auto raw = std::bit_cast<std::uint32_t>(x);
  if (format == reference::Format::tf32) raw += 0xFFF + (raw >> 13 & 1);
  if (format != reference::Format::f32) raw &= ~0x1FFFU;
  return std::bit_cast<float>(raw);
}

std::vector<float> load(const reference::Streams& streams, std::int64_t token) {
  std::vector<float> x;
  for (int slot = 0; slot < kStreams; ++slot) {
    for (std::int64_t h = 0; h < streams.hidden; ++h) {
      x.push_back(
          from_bf16(streams.data[token * streams.token_stride + slot * streams.slot_stride + h]));
    }
  }
  return x;
}

float dot(const std::vector<float>& x, const float* fn, std::int64_t begin, std::int64_t end,
          reference::Format product, const Order& order) {
  if (order.unit != nullptr) {
    std::vector<float> weights;
    for (std::int64_t k = begin; k < end; ++k) weights.push_back(operand(fn[k], product));
    return reference::matrix_sum(*order.unit, &x[begin], weights.data(), end - begin);
  }
  std::vector<float> terms;
  for (std::int64_t k = begin; k < end; ++k) terms.push_back(x[k] * operand(fn[k], product));
  return add_up(std::move(terms), order);
}

float squares(const std::vector<float>& x, std::int64_t begin, std::int64_t end,
              const Order& order) {
  std::vector<float> terms;
  for (std::int64_t k = begin; k < end; ++k) terms.push_back(x[k] * x[k]);
  return add_up(std::move(terms), order);
}

float rms(float square_sum, std::size_t count, double eps) {
  return rsqrt(square_sum / static_cast<float>(count) + static_cast<float>(eps));
}

void append_gated_sum(const std::vector<float>& x, const float* gates,
                      const reference::FusedNorm& norm, const Order& order,
                      std::vector<float>& out) {
  const std::size_t hidden = x.size() / kStreams;
  std::vector<float> y(hidden);
  for (std::size_t h = 0; h < hidden; ++h) {
    y[h] = gates[0] * x[h];
    for (std::size_t j = 1; j < kStreams; ++j) y[h] += gates[j] * x[j * hidden + h];
  }
  if (norm.weight != nullptr) {
    const float r = rms(squares(y, 0, static_cast<std::int64_t>(hidden), order), hidden, norm.eps);
    for (std::size_t h = 0; h < hidden; ++h) {
      y[h] = from_bf16(to_bf16(y[h])) * r * from_bf16(norm.weight[h]);
    }
  }
  for (const float v : y) out.push_back(from_bf16(to_bf16(v)));
}

}  // namespace

std::uint16_t to_bf16(float x) {
  const auto raw = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((raw + 0x7FFF + (raw >> 16 & 1)) >> 16);
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

float add_up(std::vector<float> terms, const Order& order) {
  if (order.reversed) std::reverse(terms.begin(), terms.end());
  const std::size_t chains = order.chains;
  const std::size_t length = (terms.size() + chains - 1) / chains;
  std::vector<float> sums(chains, 0);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    sums[order.contiguous ? i / length : i % chains] += terms[i];
  }
  for (std::size_t n = chains; n > 1; n = (n + 1) / 2) {
    for (std::size_t i = 0; i < n / 2; ++i) sums[i] += sums[n - 1 - i];
  }
  return sums[0];
}

Partials mhc_pre_partials(const reference::MhcPre& inputs, reference::Format product,
                          const Order& order) {
  Partials partials;
  const std::int64_t depth = kStreams * inputs.residual.hidden;
  for (int s = 0; s < inputs.splits; ++s) {
    const std::int64_t begin = depth * s / inputs.splits, end = depth * (s + 1) / inputs.splits;
    for (std::int64_t token = 0; token < inputs.residual.tokens; ++token) {
      const std::vector<float> x = load(inputs.residual, token);
      for (int c = 0; c < kMixes; ++c) {
        partials.mixes.push_back(dot(x, inputs.fn + c * depth, begin, end, product, order));
      }
      partials.square_sums.push_back(squares(x, begin, end, order));
    }
  }
  return partials;
}

std::vector<float> sinkhorn(std::vector<float> c, int iterations, float eps, bool reversed) {
  const auto normalise = [&](int line_stride, int stride, float added) {
    for (int line = 0; line < 4; ++line) {
      float* x = &c[line * line_stride];
      float sum = reversed ? x[3 * stride] + x[2 * stride] + x[stride] + x[0]
                           : x[0] + x[stride] + x[2 * stride] + x[3 * stride];
      sum += added;
      for (int i = 0; i < 4; ++i) x[i * stride] /= sum;
    }
  };
  for (int row = 0; row < 4; ++row) {
    const float most = *std::max_element(&c[4 * row], &c[4 * row] + 4);
    for (int i = 4 * row; i < 4 * row + 4; ++i) c[i] = exp2((c[i] - most) * kLog2E);
  }
  normalise(4, 1, 0);
  for (float& entry : c) entry += eps;
  normalise(1, 4, eps);
  for (int i = 1; i < iterations; ++i) {
    normalise(4, 1, eps);
    normalise(1, 4, eps);
  }
  return c;
}

Outputs mhc_pre_outputs(const reference::MhcPre& inputs, const Partials& partials,
                        const Order& order) {
  Outputs out;
  const std::int64_t tokens = inputs.residual.tokens;
  for (std::int64_t token = 0; token < tokens; ++token) {
    float square_sum = 0, logits[kMixes] = {}, pre[kStreams];
    for (int s = 0; s < inputs.splits; ++s) {
      square_sum += partials.square_sums[s * tokens + token];
      for (int c = 0; c < kMixes; ++c) {
        logits[c] += partials.mixes[(s * tokens + token) * kMixes + c];
      }
    }
    const std::vector<float> x = load(inputs.residual, token);
    const float r = rms(square_sum, x.size(), inputs.rms_eps);
    for (int c = 0; c < kMixes; ++c) {
      if (inputs.bf16_mixes) logits[c] = fp32::from_bf16(fp32::to_bf16(logits[c]));
      logits[c] = logits[c] * r * inputs.scale[c < 4 ? 0 : c < 8 ? 1 : 2] + inputs.base[c];
    }
    for (int j = 0; j < kStreams; ++j) {
      pre[j] = sigmoid(logits[j]) + static_cast<float>(inputs.pre_eps);
      out.post.push_back(sigmoid(logits[4 + j]) * static_cast<float>(inputs.post_mult));
    }
    const std::vector<float> comb =
        sinkhorn({logits + 8, logits + kMixes}, inputs.sinkhorn_iterations,
                 static_cast<float>(inputs.sinkhorn_eps), order.reversed);
    out.comb.insert(out.comb.end(), comb.begin(), comb.end());
    append_gated_sum(x, pre, inputs.norm, order, out.layer_input);
  }
  return out;
}

std::vector<float> mhc_post(const reference::MhcPost& inputs, const Order& order) {
  const std::int64_t hidden = inputs.residual.hidden;
  std::vector<float> out;
  for (std::int64_t token = 0; token < inputs.residual.tokens; ++token) {
    const std::vector<float> residual = load(inputs.residual, token);
    const float* comb = inputs.comb + token * 16;
    for (int n = 0; n < kStreams; ++n) {
      for (std::int64_t h = 0; h < hidden; ++h) {
        std::vector<float> terms{inputs.post[4 * token + n] *
                                 from_bf16(inputs.x[token * hidden + h])};
        for (int m = 0; m < kStreams; ++m) {
          terms.push_back(comb[4 * m + n] * residual[m * hidden + h]);
        }
        out.push_back(from_bf16(to_bf16(add_up(terms, order))));
      }
    }
  }
  return out;
}

std::vector<float> hc_head(const reference::HcHead& inputs, reference::Format product,
                           const Order& order) {
  std::vector<float> out;
  for (std::int64_t token = 0; token < inputs.hidden_states.tokens; ++token) {
    const std::vector<float> x = load(inputs.hidden_states, token);
    const auto depth = static_cast<std::int64_t>(x.size());
    const float r = rms(squares(x, 0, depth, order), x.size(), inputs.rms_eps);
    std::vector<float> rounded;
    for (const float v : x) rounded.push_back(from_bf16(to_bf16(v * r)));
    float gates[kStreams];
    for (int j = 0; j < kStreams; ++j) {
      const float* fn = inputs.fn + j * depth;
      const float mix = inputs.round_normalised ? dot(rounded, fn, 0, depth, product, order)
                                                : dot(x, fn, 0, depth, product, order) * r;
      gates[j] =
          sigmoid(mix * inputs.scale[0] + inputs.base[j]) + static_cast<float>(inputs.hc_eps);
    }
    append_gated_sum(x, gates, {}, order, out);
  }
  return out;
}

}  // namespace plumb::fp32
