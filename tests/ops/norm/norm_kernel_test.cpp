// SPDX-License-Identifier: Apache-2.0
//
// Tests what no case of plumb's norm and RoPE kernels tests: what launchers refuse, grids of many
// tokens, and identities between kernels.
#include <gtest/gtest.h>
#include <plumb/ops/norm.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/device_buffers.h"
#include "tests/support/fp32_hyper_connection.h"
#include "tests/support/random.h"

namespace plumb::device::kernels {
device::OpEntry rms_norm();
device::OpEntry fused_add_rms_norm();
device::OpEntry q_kv_rms_norm();
device::OpEntry q_head_rms_norm_rope();
device::OpEntry inverse_rope();
}  // namespace plumb::device::kernels

namespace plumb::tests {
namespace norm_kernel_test {

using Bits = std::vector<std::uint16_t>;

constexpr std::int64_t kHeadDim = 512, kTokens = 3, kHeads = 5;
const std::vector<std::string> kPlatforms = {"sim-sm90", "sim-gfx942"};  // waves of 32 and 64

Bits draw(std::uint64_t seed, std::int64_t count) {
  Random random(seed);
  Bits bits;
  for (std::int64_t i = 0; i < count; ++i) {
    bits.push_back(fp32::to_bf16(static_cast<float>(random.normal())));
  }
  return bits;
}

// Cosines and sines of three positions: position 0 is the identity.
std::vector<float> three_positions() {
  std::vector<float> cos_sin;
  for (int position = 0; position < 3; ++position) {
    for (const bool sine : {false, true}) {
      for (int pair = 0; pair < 32; ++pair) {
        const double angle = position * (0.1 + 0.3 * pair);
        cos_sin.push_back(static_cast<float>(sine ? std::sin(angle) : std::cos(angle)));
      }
    }
  }
  return cos_sin;
}

struct Heads {
  Bits norm, rotated, back;  // rms_norm; q_head_rms_norm_rope; inverse_rope of that
};

Heads run(const std::string& platform, const Bits& q, const std::vector<std::int64_t>& positions) {
  constexpr std::int64_t kRows = kTokens * kHeads, kCount = kRows * kHeadDim;
  DeviceBuffers buffers(platform);
  auto* const x = buffers.upload(q);
  auto* const cos_sin = buffers.upload(three_positions());
  auto* const at = buffers.upload(positions);
  auto* const normalised = buffers.allocate<std::uint16_t>(kCount);
  auto* const rotated = buffers.allocate<std::uint16_t>(kCount);
  const plumb_rms_norm_params norm{.x = x,
                                   .weight = nullptr,
                                   .out = normalised,
                                   .tokens = kRows,
                                   .hidden = kHeadDim,
                                   .x_row_stride = kHeadDim,
                                   .out_row_stride = kHeadDim,
                                   .eps = 1e-6F,
                                   .rounding = PLUMB_ROUND_ONCE,
                                   .stream = buffers.stream()};
  EXPECT_EQ(device::kernels::rms_norm().launch(&norm), PLUMB_OK);
  const plumb_q_head_rms_norm_rope_params rope{.q = x,
                                               .positions = at,
                                               .cos_sin = cos_sin,
                                               .out = rotated,
                                               .tokens = kTokens,
                                               .heads = kHeads,
                                               .q_token_stride = kHeads * kHeadDim,
                                               .out_token_stride = kHeads * kHeadDim,
                                               .out_head_stride = kHeadDim,
                                               .eps = 1e-6F,
                                               .stream = buffers.stream()};
  EXPECT_EQ(device::kernels::q_head_rms_norm_rope().launch(&rope), PLUMB_OK);
  Heads heads{buffers.download(normalised, kCount), buffers.download(rotated, kCount), {}};
  const plumb_inverse_rope_params inverse{.x = rotated,
                                          .positions = at,
                                          .cos_sin = cos_sin,
                                          .tokens = kTokens,
                                          .heads = kHeads,
                                          .x_token_stride = kHeads * kHeadDim,
                                          .stream = buffers.stream()};
  EXPECT_EQ(device::kernels::inverse_rope().launch(&inverse), PLUMB_OK);
  heads.back = buffers.download(rotated, kCount);
  EXPECT_TRUE(buffers.device().check_guards().empty());
  return heads;
}

// The two kernels add the squares in different orders, so a few results round to the other
// neighbour.
TEST(NormKernels, AtPositionZeroTheRotatedNormIsThePlainOne) {
  const Bits q = draw(1, kTokens * kHeads * kHeadDim);
  for (const std::string& platform : kPlatforms) {
    const Heads heads = run(platform, q, {0, 0, 0});
    int different = 0;
    for (std::size_t i = 0; i < q.size(); ++i) {
      different += heads.rotated[i] != heads.norm[i];
      EXPECT_LE(std::abs(heads.rotated[i] - heads.norm[i]), 1) << platform << ", " << i;
    }
    EXPECT_LE(different, 20) << platform;
    EXPECT_EQ(heads.back, heads.rotated) << platform << ": the inverse of nothing";
  }
}

// q_head_rms_norm_rope, then inverse_rope, must give the norm back. In the rotated dims, the
// limit allows the roundings to bf16 of both elements of the rotated pair, of the result and of the
// plain norm.
TEST(NormKernels, InverseRopeGivesTheNormBack) {
  const Bits q = draw(2, kTokens * kHeads * kHeadDim);
  for (const std::string& platform : kPlatforms) {
    const Heads heads = run(platform, q, {2, 1, 2});
    double turned = 0;
    for (std::size_t i = 0; i < q.size(); ++i) {
      const double norm = fp32::from_bf16(heads.norm[i]), back = fp32::from_bf16(heads.back[i]);
      if (i % kHeadDim < 448) {
        EXPECT_EQ(heads.back[i], heads.rotated[i]) << i;
        EXPECT_LE(std::abs(heads.back[i] - heads.norm[i]), 1) << i;
        continue;
      }
      const double neighbour = fp32::from_bf16(heads.norm[i ^ 1]);
      const double length = std::hypot(norm, neighbour);
      EXPECT_LE(std::abs(back - norm), 0x1p-8 * (1.5 * length + 2 * std::abs(norm))) << i;
      turned = std::max(turned, std::abs(fp32::from_bf16(heads.rotated[i]) - norm));
    }
    EXPECT_GT(turned, 1) << platform << ": nothing was rotated";
  }
}

TEST(NormKernels, TokensLieOnTheGridsX) {
  constexpr std::int64_t kMany = 70000;  // more than the largest grid dimension y, 65535
  DeviceBuffers buffers("sim-sm90");
  auto* const rows = buffers.upload(Bits(kMany));
  auto* const weight = buffers.upload(Bits(1));
  auto* const out = buffers.allocate<std::uint16_t>(2 * kMany);
  plumb_q_kv_rms_norm_params p{};
  p.q = p.kv = rows;
  p.q_weight = p.kv_weight = weight;
  p.out_q = out;
  p.out_kv = out + kMany;
  p.tokens = kMany;
  p.q_hidden = p.kv_hidden = p.q_row_stride = p.kv_row_stride = 1;
  p.out_q_row_stride = p.out_kv_row_stride = 1;
  p.eps = 1e-6F;
  p.stream = buffers.stream();
  buffers.device().begin_capture(buffers.stream());
  EXPECT_EQ(device::kernels::q_kv_rms_norm().launch(&p), PLUMB_OK);
  const device::Graph graph = buffers.device().end_capture(buffers.stream());
  EXPECT_EQ(buffers.device().nodes(graph).size(), 1U);
  buffers.device().destroy_graph(graph);
}

// Each change makes the legal call illegal, and the launcher must refuse it.
template <class Params>
void expect_refused(const device::OpEntry& entry, const Params& legal,
                    const std::vector<std::function<void(Params&)>>& changes) {
  EXPECT_EQ(entry.launch(&legal), PLUMB_OK) << entry.op;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Params changed = legal;
    changes[i](changed);
    EXPECT_EQ(entry.launch(&changed), PLUMB_INVALID_ARGUMENT) << entry.op << ", change " << i;
  }
  Params empty = legal;
  empty.tokens = 0;
  EXPECT_EQ(entry.launch(&empty), PLUMB_OK) << entry.op;
}

TEST(NormKernels, RefuseIllegalCalls) {
  DeviceBuffers buffers("sim-sm90");
  auto* const x = buffers.upload(Bits(2 * kHeadDim, fp32::to_bf16(1)));
  auto* const y = buffers.upload(Bits(2 * kHeadDim, fp32::to_bf16(1)));
  auto* const cos_sin = buffers.upload(three_positions());
  auto* const positions = buffers.upload(std::vector<std::int64_t>{1, 2});
  device::Stream stream = buffers.stream();

  using FusedAdd = plumb_fused_add_rms_norm_params;
  expect_refused<FusedAdd>(
      device::kernels::fused_add_rms_norm(),
      {0, x, y, y, 2, 8, 8, 8, 1e-6F, PLUMB_ROUND_ONCE, PLUMB_SUM_BF16, stream},
      {[](FusedAdd& p) { p.tokens = -1; }, [](FusedAdd& p) { p.hidden = 0; },
       [](FusedAdd& p) { p.x_row_stride = 7; }, [](FusedAdd& p) { p.residual_row_stride = 7; },
       [](FusedAdd& p) { p.x = nullptr; }, [](FusedAdd& p) { p.residual = nullptr; },
       [](FusedAdd& p) { p.weight = nullptr; }});
  using QKv = plumb_q_kv_rms_norm_params;
  expect_refused<QKv>(
      device::kernels::q_kv_rms_norm(),
      {0, x, x, y, y, y, y + 64, 2, 8, 4, 8, 4, 8, 4, 1e-6F, stream, PLUMB_ROUND_ONCE},
      {[](QKv& p) { p.tokens = -1; }, [](QKv& p) { p.kv_row_stride = 3; },
       [](QKv& p) { p.q_row_stride = 7; }, [](QKv& p) { p.out_q_row_stride = 7; },
       [](QKv& p) { p.out_kv_row_stride = 3; }, [](QKv& p) { p.q_hidden = 0; },
       [](QKv& p) { p.kv = nullptr; }, [](QKv& p) { p.out_q = nullptr; }});
  using QHead = plumb_q_head_rms_norm_rope_params;
  expect_refused<QHead>(
      device::kernels::q_head_rms_norm_rope(),
      {0, x, positions, cos_sin, y, 2, 1, kHeadDim, kHeadDim, kHeadDim, 1e-6F, stream,
       PLUMB_ROUND_ONCE},
      {[](QHead& p) { p.tokens = -1; }, [](QHead& p) { p.heads = 0; },
       [](QHead& p) { p.q_token_stride = kHeadDim - 1; },
       [](QHead& p) { p.out_token_stride = kHeadDim - 1; },
       [](QHead& p) { p.out_head_stride = kHeadDim - 1; }, [](QHead& p) { p.positions = nullptr; },
       [](QHead& p) { p.cos_sin = nullptr; }, [](QHead& p) { p.out = nullptr; }});
  using Inverse = plumb_inverse_rope_params;
  expect_refused<Inverse>(
      device::kernels::inverse_rope(),
      {0, x, positions, cos_sin, 2, 1, kHeadDim, stream, y, kHeadDim, kHeadDim},
      {[](Inverse& p) { p.tokens = -1; }, [](Inverse& p) { p.heads = 0; },
       [](Inverse& p) { p.x_token_stride = kHeadDim - 1; },
       [](Inverse& p) { p.out_token_stride = kHeadDim - 1; },
       [](Inverse& p) { p.out_head_stride = kHeadDim - 1; }, [](Inverse& p) { p.x = nullptr; }});
  buffers.device().synchronize(stream);
}

}  // namespace norm_kernel_test
}  // namespace plumb::tests
