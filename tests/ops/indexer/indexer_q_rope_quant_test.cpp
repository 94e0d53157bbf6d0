// SPDX-License-Identifier: Apache-2.0
//
// Tests the indexer's queries: the reference against results computed by hand, the codes that it
// permits against correct arithmetic, and the kernel on edge shapes.
#include "reference/indexer/indexer_q_rope_quant.h"

#include <gtest/gtest.h>
#include <plumb/ops/indexer.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cases/tables/problem.h"
#include "reference/formats/bfloat16.h"
#include "tests/support/op_session.h"
#include "tests/support/random.h"

namespace plumb::device::kernels {
device::OpEntry indexer_q_rope_quant();
}
namespace plumb::cases {
OpDefinition define_indexer_q_rope_quant();
}

namespace plumb::reference {
namespace {

using tests::Random;

// One head of one token.
struct OneHead {
  std::vector<std::uint16_t> q, weight = {encode_bf16(3.0)};
  std::vector<float> cos_sin;
  std::vector<std::int64_t> position = {0};
  IndexerQRopeQuant inputs;

  OneHead(const std::vector<double>& values, std::vector<float> angles, std::int64_t offset,
          bool halves)
      : cos_sin(std::move(angles)) {
    for (const double value : values) q.push_back(encode_bf16(value));
    const auto dim = static_cast<std::int64_t>(q.size());
    inputs = {.q = q.data(),
              .q_token_stride = dim,
              .positions = position.data(),
              .cos_sin = cos_sin.data(),
              .weights = weight.data(),
              .tokens = 1,
              .heads = 1,
              .dim = dim,
              .rope_dim = static_cast<std::int64_t>(cos_sin.size()),
              .rope_offset = offset,
              .halves = halves,
              .softmax_scale = 0.5,
              .head_scale = 0.25};
  }
  std::vector<double> rotated() const { return rotated_queries(inputs, {}).value; }
  double scale() const { return head_scales(inputs, rotated_queries(inputs, {}))[0].exact; }
  double weight_out() const { return indexer_q_weights(inputs, {UsedScale{scale()}}).value[0]; }
  std::vector<int> codes() const {
    const CodeEstimate estimate =
        indexer_q_codes(inputs, rotated_queries(inputs, {}), {UsedScale{scale()}});
    std::vector<int> found;
    for (std::int64_t i = 0; i < inputs.dim; ++i) found.push_back(honest_codes(estimate, i).exact);
    return found;
  }
};

TEST(IndexerQ, TurnsNeighboursOrHalves) {
  // Turns the first pair by a quarter, and the second not at all.
  const std::vector<float> angles = {0, 1, 1, 0};
  EXPECT_EQ(OneHead({1, 2, 3, 4}, angles, 0, false).rotated(), (std::vector<double>{-2, 1, 3, 4}));
  EXPECT_EQ(OneHead({1, 2, 3, 4}, angles, 0, true).rotated(), (std::vector<double>{-3, 2, 1, 4}));
  EXPECT_EQ(OneHead({9, 9, 1, 2, 3, 4}, angles, 2, true).rotated(),
            (std::vector<double>{9, 9, -3, 2, 1, 4}));
}

TEST(IndexerQ, ScalesAreTheLeastPowersOfTwoThatFit) {
  const auto scale_of = [](double amax) { return OneHead({0, -amax, 1e-20, 0}, {1, 0}, 0, false); };
  EXPECT_EQ(scale_of(448).scale(), 1);
  EXPECT_EQ(scale_of(450).scale(), 2);
  EXPECT_EQ(scale_of(4).scale(), 0x1p-6);
  EXPECT_EQ(scale_of(0).scale(), 0x1p-22);  // 1e-4 / 448 = 2^-22.1
  OneHead low = scale_of(0);
  low.inputs.amax_floor = 1e-10F;
  EXPECT_EQ(low.scale(), 0x1p-42);
  OneHead fnuz = scale_of(224);
  fnuz.inputs.dialect = Dialect::e4m3fnuz;
  EXPECT_EQ(fnuz.scale(), 1);
  EXPECT_EQ(scale_of(224).scale(), 0.5);
}

// 448.5 rounds to 448 in bf16, which needs a scale of 1. Unrounded it would need a scale of 2.
TEST(IndexerQ, RoundsToBf16BeforeTheLargestIsTaken) {
  const OneHead head({448, 0, 0, 0}, {448.5F / 448, 0}, 0, false);
  EXPECT_EQ(head.scale(), 1);
  EXPECT_EQ(head.codes(), (std::vector<int>{0x7e, 0, 0, 0}));
}

TEST(IndexerQ, KeepsFp32WhereItIsToldTo) {
  OneHead head({448, 0, 0, 0}, {448.5F / 448, 0}, 0, false);
  head.inputs.rounds_to_bf16 = false;
  EXPECT_EQ(head.scale(), 2);
  head.inputs.pow2_scale = false;
  EXPECT_NEAR(head.scale(), 448.5 / 448, 1e-7);
  EXPECT_EQ(head.codes(), (std::vector<int>{0x7e, 0, 0, 0}));
}

// Rows of the 4 x 4 Hadamard matrix: ++++, +-+-, ++--, +--+.
TEST(IndexerQ, TransformsRotatedValues) {
  OneHead head({1, 2, 3, 4}, {0, 1, 1, 0}, 0, false);  // rotated: -2, 1, 3, 4
  head.inputs.hadamard = true;
  EXPECT_EQ(head.rotated(), (std::vector<double>{3, -2, -4, -1}));
}

// For a dim that is no power of two, DeepSeek's transform pads with zeros and drops the outputs
// past `dim`.
TEST(IndexerQ, TransformsWhatIsNoPowerOfTwo) {
  OneHead head({1, 2, 4}, {}, 0, false);
  head.inputs.hadamard = true;
  const double root = 1 / std::sqrt(3.0);
  EXPECT_EQ(head.rotated(), (std::vector<double>{7 * root, 3 * root, -1 * root}));
}

// 1 + 2^-9 rounds to 1 in bf16, so its difference to 1 becomes 0.
TEST(IndexerQ, RoundsToBf16BeforeTheTransform) {
  OneHead head({1, 1}, {1, 0x1p-9F}, 0, false);
  head.inputs.hadamard = true;
  EXPECT_EQ(head.rotated()[1], 0);
  head.inputs.rounds_to_bf16 = false;
  EXPECT_NEAR(head.rotated()[1], -0x1p-8 / std::sqrt(2.0), 1e-6);
}

TEST(IndexerQ, ANanIsAnyCodeOfOneAndNothingElse) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const OneHead head({nan, 2, 3, 4}, {0, 1, 1, 0}, 0, true);  // pairs elements 0 and 2
  const CodeEstimate codes =
      indexer_q_codes(head.inputs, rotated_queries(head.inputs, {}), {UsedScale{1}});
  for (const std::int64_t i : {0, 2}) EXPECT_TRUE(honest_codes(codes, i).nan) << i;
  for (const std::int64_t i : {1, 3}) EXPECT_FALSE(honest_codes(codes, i).nan) << i;
}

TEST(IndexerQ, FoldsTheScaleIntoTheWeight) {
  const OneHead head({1, 2, 3, 4}, {0, 1, 1, 0}, 0, true);
  // -3, 2, 1, 4 times 64: -192, 128, 64, 256.
  EXPECT_EQ(head.codes(), (std::vector<int>{0xf4, 0x70, 0x68, 0x78}));
  EXPECT_EQ(head.weight_out(), 3 * 0x1p-6 * 0.125);
}

TEST(IndexerQ, ReadsTheScaleOffTheWeight) {
  const OneHead head({1, 2, 3, 4}, {0, 1, 1, 0}, 0, true);
  const std::vector<HeadScale> either = {{.exact = 1, .least = 1, .largest = 2}};
  const auto used = [&](float weight_out) {
    return scales_used(head.inputs, either, &weight_out)[0].value;
  };
  EXPECT_EQ(used(0.375F), 1);
  EXPECT_EQ(used(0.75F), 2);
  EXPECT_EQ(used(1e6F), 2) << "no scale that honest arithmetic gives";
  EXPECT_EQ(used(0), 1);
  EXPECT_EQ(used(std::nanf("")), 1);
}

// Three bf16 numbers around a power of two, so that the distances to the lower and upper neighbour
// differ.
TEST(IndexerQ, ReadsOneOfManyScalesOffTheWeight) {
  OneHead head({1, 2, 3, 4}, {0, 1, 1, 0}, 0, true);
  head.inputs.pow2_scale = false;
  const double least = 1 - 0x1p-8, largest = 1 + 0x1p-7;
  const std::vector<HeadScale> either = {{1.0 / 448, least / 448, largest / 448, 0x1p-24}};
  for (const double amax : {least, 1.0, largest}) {
    const auto weight_out = static_cast<float>(3 * 0.125 * amax / 448);
    EXPECT_NEAR(scales_used(head.inputs, either, &weight_out)[0].value * 448, amax, 1e-7);
  }
}

// Computes a head in fp32 as a correct kernel does.
struct HonestHead {
  bool fused = false, pow2 = true, to_bf16 = true, hadamard = false;

  float stored(float value) const {
    return to_bf16 ? static_cast<float>(decode_bf16(encode_bf16(value))) : value;
  }

  // The Hadamard transform: terms added in order (`fused`), or by sums and differences of pairs.
  std::vector<float> transform(const std::vector<float>& x) const {
    std::vector<float> y = x;
    for (std::size_t distance = 1; !fused && distance < y.size(); distance *= 2) {
      for (std::size_t i = 0; i < y.size(); ++i) {
        if (i & distance) continue;
        const float a = y[i], b = y[i + distance];
        y[i] = a + b;
        y[i + distance] = a - b;
      }
    }
    for (std::size_t i = 0; i < y.size(); ++i) {
      float sum = 0;
      for (std::size_t j = 0; j < x.size(); ++j) sum += std::popcount(i & j) % 2 ? -x[j] : x[j];
      y[i] = stored((fused ? sum : y[i]) * static_cast<float>(std::sqrt(1.0 / 128)));
    }
    return y;
  }

  std::vector<float> rotate(const OneHead& head) const {
    std::vector<float> got;
    for (std::size_t d = 0; d < 128; ++d) {
      auto value = static_cast<float>(decode_bf16(head.q[d]));
      if (d >= 64) {
        const std::size_t pair = (d - 64) / 2;
        const float cosine = head.cos_sin[pair], angle = head.cos_sin[32 + pair];
        const float sine = d % 2 == 0 ? -angle : angle;
        const auto other = static_cast<float>(decode_bf16(head.q[d ^ 1]));
        value = fused ? std::fma(value, cosine, other * sine) : value * cosine + other * sine;
      }
      got.push_back(stored(value));
    }
    return hadamard ? transform(got) : got;
  }
  float scale_of(float amax) const {
    return pow2 ? std::exp2(std::ceil(std::log2(amax / 448))) : amax / 448;
  }
  float quotient(float x, float scale) const { return fused ? x * (1 / scale) : x / scale; }
};

OneHead random_head(std::uint64_t seed) {
  Random random(seed);
  std::vector<double> values;
  std::vector<float> angles(64);
  for (int i = 0; i < 128; ++i) values.push_back(random.normal());
  for (std::size_t i = 0; i < 32; ++i) {
    const double angle = 6.3 * random.uniform();
    angles[i] = static_cast<float>(std::cos(angle));
    angles[32 + i] = static_cast<float>(std::sin(angle));
  }
  return {values, angles, 64, false};
}

// Runs many random heads in fp32, with or without fused multiply-add. Every code, scale and weight
// must be a permitted one, and about as many codes must flip as expected.
void expect_honest_codes(const HonestHead& kernel, double most_expected) {
  std::int64_t flips = 0;
  double expected_flips = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    OneHead head = random_head(seed);
    head.inputs.pow2_scale = kernel.pow2;
    head.inputs.rounds_to_bf16 = kernel.to_bf16;
    head.inputs.hadamard = kernel.hadamard;
    const std::vector<float> got = kernel.rotate(head);
    float amax = 0;
    for (const float value : got) amax = std::max(amax, std::abs(value));
    const float own = kernel.scale_of(amax), weight = 3.0F * own * 0.125F;
    const Estimate rotated = rotated_queries(head.inputs, {});
    const auto used = scales_used(head.inputs, head_scales(head.inputs, rotated), &weight);
    EXPECT_NEAR(own, used[0].value, used[0].error * used[0].value) << seed;
    const Estimate weights = indexer_q_weights(head.inputs, used);
    EXPECT_NEAR(double{weight}, weights.value[0], weights.bound(0)) << seed;
    const CodeEstimate codes = indexer_q_codes(head.inputs, rotated, used);
    for (std::int64_t i = 0; i < 128; ++i) {
      const HonestCodes honest = honest_codes(codes, i);
      const float value = kernel.quotient(got[static_cast<std::size_t>(i)], own);
      const std::uint8_t code = encode_e4m3(value, Dialect::e4m3fn);
      const int order = order_of(codes.format, code);
      EXPECT_TRUE(honest.least <= order && order <= honest.most) << seed << ", " << i;
      flips += code != honest.exact;
      expected_flips += honest.flip;
    }
  }
  EXPECT_LE(flips, most_honest_flips(expected_flips, 1));
  EXPECT_LE(expected_flips, most_expected) << "of 51200 codes";
}

TEST(IndexerQ, HonestArithmeticGivesHonestCodes) {
  for (const bool fused : {false, true}) expect_honest_codes({.fused = fused}, 20);
}

TEST(IndexerQ, HonestArithmeticIsHonestUnderEachChoice) {
  for (const bool fused : {false, true}) {
    expect_honest_codes({.fused = fused, .pow2 = false}, 100);
    expect_honest_codes({.fused = fused, .pow2 = false, .to_bf16 = false}, 100);
    expect_honest_codes({.fused = fused, .to_bf16 = false}, 20);
    expect_honest_codes({.fused = fused, .hadamard = true}, 200);
    expect_honest_codes({.fused = fused, .pow2 = false, .to_bf16 = false, .hadamard = true}, 200);
  }
}

}  // namespace
}  // namespace plumb::reference

namespace plumb::cases {
namespace {

TEST(IndexerQKernel, IsRightForEveryWidthAndPlaceOfTheRotation) {
  const OpDefinition op = define_indexer_q_rope_quant();
  const device::OpEntry entry = device::kernels::indexer_q_rope_quant();
  for (const std::int64_t dim : {8, 10, 64, 128}) {
    for (const std::int64_t rope_dim : {2, 8}) {
      for (const std::int64_t offset : {std::int64_t{0}, dim - rope_dim}) {
        Row row;
        row.op = op.name;
        row.where = "test";
        for (const Parameter& parameter : op.parameters) {
          row.integers[std::string(parameter.name)] = parameter.default_value;
        }
        row.integers["tokens"] = 5;
        row.integers["heads"] = 3;
        row.integers["dim"] = dim;
        row.integers["rope_dim"] = rope_dim;
        row.integers["rope_offset"] = offset;
        for (const char* pairs : {"interleaved", "halves"}) {
          row.words["rope_pairs"] = pairs;
          const bool sglang = offset > 0;
          row.words["scale_form"] = sglang ? "fp32" : "pow2";
          row.words["rotated_rounding"] = sglang ? "none" : "bf16";
          row.words["hadamard"] = rope_dim == 8 ? "q_and_k" : "none";
          for (const Fill fill : {Fill::exact, Fill::real, Fill::adversarial}) {
            const Step step{.seed = 6, .live = 4, .fill = fill, .dead_rows = DeadRows::nan};
            for (const char* platform : {"sim-sm90", "sim-gfx942"}) {
              OpSession session(op, row, step, platform);
              ASSERT_EQ(session.launch(entry), PLUMB_OK);
              for (const TensorReport& report : session.judge(step, entry)) {
                EXPECT_TRUE(report.passed()) << platform << ": " << report.failures.front();
              }
            }
          }
        }
      }
    }
  }
}

TEST(IndexerQKernel, RefusesWhatItCannotRotate) {
  const device::OpEntry entry = device::kernels::indexer_q_rope_quant();
  EXPECT_EQ(entry.launch(nullptr), PLUMB_INVALID_ARGUMENT);
  plumb_indexer_q_rope_quant_params legal{};
  legal.heads = 2;
  legal.dim = 128;
  legal.rope_dim = legal.rope_offset = 64;
  legal.q_token_stride = 256;
  legal.q_out_token_stride = 256;
  legal.q_out_head_stride = 128;
  legal.weights_out_row_stride = 2;
  legal.amax_floor = 1e-4F;
  legal.dialect = PLUMB_E4M3FN;
  EXPECT_EQ(entry.launch(&legal), PLUMB_OK) << "no tokens";
  const auto refused = [&](const auto& change) {
    plumb_indexer_q_rope_quant_params p = legal;
    change(p);
    return entry.launch(&p) == PLUMB_INVALID_ARGUMENT;
  };
  EXPECT_TRUE(refused([](auto& p) { p.rope_offset = 65; }));
  EXPECT_TRUE(refused([](auto& p) { p.rope_dim = 63; }));
  EXPECT_TRUE(refused([](auto& p) { p.amax_floor = 0; }));
  EXPECT_TRUE(refused([](auto& p) { p.q_token_stride = 255; }));
  EXPECT_TRUE(refused([](auto& p) { p.q_out_head_stride = 127; }));
  EXPECT_TRUE(refused([](auto& p) { p.weights_out_row_stride = 1; }));
  EXPECT_TRUE(refused([](auto& p) { p.dialect = PLUMB_BF16; }));
  EXPECT_TRUE(refused([](auto& p) { p.tokens = 1; })) << "null pointers";
  legal.dim = legal.q_out_head_stride = legal.q_out_token_stride = 1032;
  legal.q_token_stride = 2 * legal.dim;
  EXPECT_EQ(entry.launch(&legal), PLUMB_OK);
  legal.hadamard = PLUMB_HADAMARD_Q_AND_K;
  EXPECT_EQ(entry.launch(&legal), PLUMB_UNSUPPORTED) << "too wide to be transformed";
}

}  // namespace
}  // namespace plumb::cases
