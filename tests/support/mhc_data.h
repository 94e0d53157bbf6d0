// SPDX-License-Identifier: Apache-2.0
//
// Random and hand-made inputs of the hyper-connection ops for tests, with rows of very different
// norm.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "reference/hyper_connection/hc_head.h"
#include "reference/hyper_connection/mhc_post.h"
#include "reference/hyper_connection/mhc_pre.h"
#include "tests/support/fp32_hyper_connection.h"
#include "tests/support/random.h"

namespace plumb::tests {

// Inputs of mhc_pre, mhc_post and hc_head. mhc_post uses `x`, `post` and `comb` in addition to the
// residual.
struct HyperConnectionData {
  std::int64_t tokens, hidden;
  std::vector<std::uint16_t> residual, x, norm_weight;
  std::vector<float> fn, scale, base, post, comb;

  HyperConnectionData(std::uint64_t seed, std::int64_t token_count, std::int64_t width)
      : tokens(token_count), hidden(width) {
    Random random(seed);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const double row_scale = std::pow(10.0, 6 * random.uniform() - 3);
      for (std::int64_t k = 0; k < 4 * hidden; ++k) {
        const double outlier = random.uniform() < 1.0 / 64 ? 30 : 1;
        residual.push_back(bf16(row_scale * outlier * random.normal()));
      }
      for (std::int64_t h = 0; h < hidden; ++h) x.push_back(bf16(row_scale * random.normal()));
      for (int i = 0; i < 4; ++i) post.push_back(static_cast<float>(2 * random.uniform()));
      for (int i = 0; i < 16; ++i) comb.push_back(static_cast<float>(random.uniform() / 2));
    }
    for (std::int64_t h = 0; h < hidden; ++h) {
      norm_weight.push_back(bf16(1 + 0.1 * random.normal()));
    }
    const double weight = 1 / std::sqrt(4.0 * static_cast<double>(hidden));
    for (std::int64_t i = 0; i < 24 * 4 * hidden; ++i) {
      fn.push_back(static_cast<float>(weight * random.normal()));
    }
    for (int i = 0; i < 3; ++i) scale.push_back(static_cast<float>(0.5 + random.uniform()));
    for (int c = 0; c < 24; ++c) base.push_back(static_cast<float>(random.normal()));
  }

  static std::uint16_t bf16(double v) { return fp32::to_bf16(static_cast<float>(v)); }
  reference::Streams streams() const {
    return {residual.data(), tokens, hidden, 4 * hidden, hidden};
  }
  reference::MhcPre mhc_pre() const {
    reference::MhcPre inputs;
    inputs.residual = streams();
    inputs.fn = fn.data();
    inputs.scale = scale.data();
    inputs.base = base.data();
    return inputs;
  }
  reference::MhcPost mhc_post() const { return {x.data(), streams(), post.data(), comb.data()}; }
  reference::HcHead hc_head() const {
    reference::HcHead inputs;
    inputs.hidden_states = streams();
    inputs.fn = fn.data();
    inputs.scale = scale.data();
    inputs.base = base.data();
    return inputs;
  }
};

}  // namespace plumb::tests
