// SPDX-License-Identifier: Apache-2.0
//
// Right fp32 implementations of the hyper-connection ops, in several summation orders. The
// references' bounds must admit them, but only just. Written independently of reference/ and of the
// kernels. exp2, rsqrt and division are rounded correctly, so the declared numerics are 1/2 ulp.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/hyper_connection/hc_head.h"
#include "reference/hyper_connection/mhc_post.h"
#include "reference/hyper_connection/mhc_pre.h"
#include "reference/matrix_unit.h"

namespace plumb::fp32 {

// Summation order: terms are distributed to `chains` sequential sums, adjacent terms to the same
// chain (contiguous) or to different ones. A tree adds the chains.
struct Order {
  int chains = 1;
  bool contiguous = false, reversed = false;
  // Matrix unit for products with weights; implies one chain.
  const reference::MatrixUnit* unit = nullptr;
};

std::uint16_t to_bf16(float x);
float from_bf16(std::uint16_t bits);
float add_up(std::vector<float> terms, const Order& order);

struct Partials {
  std::vector<float> mixes, square_sums;  // [splits, tokens, 24], [splits, tokens]
};
struct Outputs {
  std::vector<float> post, comb, layer_input;
};
Partials mhc_pre_partials(const reference::MhcPre& inputs, reference::Format product,
                          const Order& order);
Outputs mhc_pre_outputs(const reference::MhcPre& inputs, const Partials& partials,
                        const Order& order);
std::vector<float> sinkhorn(std::vector<float> logits, int iterations, float eps, bool reversed);
std::vector<float> mhc_post(const reference::MhcPost& inputs, const Order& order);
std::vector<float> hc_head(const reference::HcHead& inputs, reference::Format product,
                           const Order& order);

}  // namespace plumb::fp32
