// SPDX-License-Identifier: Apache-2.0
//
// Tests sparse MLA prefill: results computed by hand for the attention over a workspace and for the
// gather that fills it, and that both together equal the decode over the cache.
#include "reference/sparse_mla/sparse_mla_prefill.h"

#include <gtest/gtest.h>
#include <plumb/ops/sparse_mla.h>
#include <plumb/ops/types.h>

#include <cmath>
#include <limits>
#include <vector>

#include "device/op_entry.h"
#include "reference/sparse_mla/dequantize_and_gather_k_cache.h"
#include "reference/sparse_mla/sparse_mla_decode.h"
#include "tests/support/mla_test_problem.h"

namespace plumb::device::kernels {
device::OpEntry sparse_mla_prefill();
device::OpEntry dequantize_and_gather_k_cache();
}  // namespace plumb::device::kernels

namespace plumb::tests {
namespace sparse_mla_prefill_test {

using reference::Dialect;
using reference::kMlaDim;
using reference::KvLayout;
using reference::MlaWant;
using reference::Numerics;
using reference::SparseMlaPrefill;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double random_value(std::int64_t t, std::int64_t d) { return normal(1, t * 576 + d); }
double random_query(std::int64_t i) { return normal(2, i); }

SparseMlaPrefill value_of(const reference::SparseMlaProblem& problem) {
  return reference::sparse_mla_prefill(problem, Numerics{}, MlaWant::value);
}

// Keys are 1 and 3 in dimension 0, and 5 and 7 in dimension 575, which is not part of the value.
// Queries are 2 for head 0 and -2 for head 1, in dimension 0. At scale 1/4 the scores are 0.5 and
// 1.5, and -0.5 and -1.5.
TEST(SparseMlaPrefill, TwoKeysByHand) {
  const auto value = [](std::int64_t t, std::int64_t d) {
    return d == 0 ? (t == 0 ? 1.0 : 3.0) : d == 575 ? 5.0 + 2 * static_cast<double>(t) : 0.0;
  };
  TestProblem test(
      1, 2, 2, value, [](std::int64_t i) { return i == 0     ? 2.0
                                                  : i == 576 ? -2.0
                                                             : 0.0; },
      KvLayout::rows);
  test.problem.sm_scale = 0.25f;
  const float sinks[] = {static_cast<float>(1.5 + std::log1p(std::exp(-1.0))), -1e30f};
  const SparseMlaPrefill without = value_of(test.problem);
  test.problem.attn_sink = sinks;
  const SparseMlaPrefill result = value_of(test.problem);
  const double p = 1 / (1 + std::exp(-1.0));  // weight of the larger score
  EXPECT_EQ(result.max_logits.value, (std::vector<double>{1.5, -0.5}));
  EXPECT_NEAR(result.lse.value[0], 1.5 + std::log1p(std::exp(-1.0)), 1e-15);
  EXPECT_NEAR(result.lse.value[1], -0.5 + std::log1p(std::exp(-1.0)), 1e-15);
  EXPECT_NEAR(without.out.value[0], 1 - p + 3 * p, 1e-15);
  EXPECT_NEAR(result.out.value[0], (1 - p + 3 * p) / 2, 1e-7);  // the sink is equal to lse
  EXPECT_NEAR(result.out.value[kMlaDim], p + 3 * (1 - p), 1e-15);
  EXPECT_EQ(result.out.columns, kMlaDim);
  EXPECT_EQ(result.out.value[kMlaDim - 1], 0);
}

TEST(SparseMlaPrefill, IndicesOutsideTheWorkspaceAreSkipped) {
  TestProblem test(2, 2, 4, random_value, random_query, KvLayout::rows);
  const SparseMlaPrefill all = value_of(test.problem);
  const std::vector<std::int32_t> indices{0,  -1, 1, 4, 2, -7, 3, 2147483647,
                                          -1, 4,  5, 9, 4, 4,  4, -2147483647 - 1};
  test.problem.main = {indices.data(), nullptr, nullptr, 8, 8, 8};
  const SparseMlaPrefill result = reference::sparse_mla_prefill(test.problem, Numerics{});
  for (std::int64_t i = 0; i < 2 * kMlaDim; ++i) ASSERT_EQ(all.out.value[i], result.out.value[i]);
  for (const std::int64_t head : {0, 1}) {
    EXPECT_EQ(all.lse.value[head], result.lse.value[head]);
    EXPECT_EQ(result.max_logits.value[2 + head], -kInfinity);
    EXPECT_EQ(result.lse.value[2 + head], kInfinity);
    EXPECT_EQ(result.out.value[(2 + head) * kMlaDim], 0);
    EXPECT_LE(result.out.bound((2 + head) * kMlaDim), 0x1p-126);
  }
}

TEST(SparseMlaPrefill, EveryRowHasALengthOfItsOwn) {
  TestProblem test(3, 1, 6, random_value, random_query, KvLayout::rows);
  const std::vector<std::int32_t> lengths{6, 0, 2};
  test.problem.main.lengths = lengths.data();
  const SparseMlaPrefill dense = value_of(test.problem);
  const std::vector<std::int32_t> flat{0, 1, 2, 3, 4, 5, 0, 1}, indptr{0, 6, 6, 8};
  test.problem.main = {flat.data(), nullptr, indptr.data(), 0, 0, 6};
  const SparseMlaPrefill ragged = value_of(test.problem);
  EXPECT_EQ(dense.out.value, ragged.out.value);
  EXPECT_EQ(dense.max_logits.value, ragged.max_logits.value);
  EXPECT_EQ(dense.lse.value[1], kInfinity);
}

// Requests of 5 and 3 tokens in pages of 2. Block 9 belongs to no request.
struct Gather {
  TestCache cache{10, 2};
  std::vector<std::int32_t> block_table{4, 1, 7, 3, 8, 9};
  std::vector<std::int32_t> seq_lens{5, 3};
  reference::KCacheGather inputs;

  Gather() {
    for (std::int64_t request = 0; request < 2; ++request) {
      for (std::int32_t t = 0; t < seq_lens[request]; ++t) {
        const std::int32_t block = block_table[request * 3 + t / 2];
        cache.write(block * 2 + t % 2, request * 10 + t, [](std::int64_t token, std::int64_t) {
          return static_cast<double>(token + 1);
        });
      }
    }
    inputs.cache = cache.view;
    inputs.block_table = block_table.data();
    inputs.block_table_row_stride = 3;
    inputs.seq_lens = seq_lens.data();
    inputs.requests = 2;
    inputs.rows = 6;
  }
  // First value of each row; -1 for a row that is not written.
  std::vector<double> rows() const {
    const auto workspace = reference::dequantize_and_gather_k_cache(inputs);
    std::vector<double> first;
    for (std::size_t row = 0; row < workspace.written.size(); ++row) {
      first.push_back(workspace.written[row] ? workspace.values[row * kMlaDim] : -1);
    }
    return first;
  }
};

TEST(DequantizeAndGather, TokensEndAtTheSequencesEndAndRowsStartAtTheOffset) {
  Gather gather;
  EXPECT_EQ(gather.rows(), (std::vector<double>{1, 2, 3, 4, 5, -1, 11, 12, 13, -1, -1, -1}));
  const std::vector<std::int32_t> gather_lens{2, 3};
  gather.inputs.gather_lens = gather_lens.data();
  gather.inputs.offset = 3;
  EXPECT_EQ(gather.rows(), (std::vector<double>{-1, -1, -1, 4, 5, -1, -1, -1, -1, 11, 12, 13}));
  const std::vector<std::int32_t> none{0, 0};
  gather.inputs.gather_lens = none.data();
  EXPECT_EQ(gather.rows(), std::vector<double>(12, -1));
}

TEST(DequantizeAndGather, WhatMayBecomeOfAValueInBf16) {
  using reference::is_bf16_of;
  EXPECT_TRUE(is_bf16_of(0x3f80, 1));
  EXPECT_FALSE(is_bf16_of(0x3f81, 1));
  EXPECT_FALSE(is_bf16_of(0xbf80, 1));
  EXPECT_TRUE(is_bf16_of(0x8000, 0.0));  // either zero is right for 0
  EXPECT_TRUE(is_bf16_of(0x7fc1, NAN));  // any NaN is right for NaN
  EXPECT_TRUE(is_bf16_of(0xff81, NAN));
  EXPECT_FALSE(is_bf16_of(0x7f80, NAN));
  EXPECT_TRUE(is_bf16_of(0x7f80, std::ldexp(448, 120)));  // 448 * 2^120 is out of range: infinity
  EXPECT_TRUE(is_bf16_of(0x7f60, std::ldexp(448, 119)));  // the largest value with scale 2^119
  EXPECT_TRUE(is_bf16_of(0x0001, 0x1p-133));              // the least subnormal may be kept
  EXPECT_TRUE(is_bf16_of(0x0000, 0x1p-133));              // or flushed to 0
  EXPECT_FALSE(is_bf16_of(0x0000, 0x1p-126));
}

// Compares a prefill over a gathered workspace, as engines run it, with a decode over the same
// tokens in the cache. The workspace is exact, so there is no difference.
TEST(DequantizeAndGather, PrefillOverTheWorkspaceIsDecodeOverTheCache) {
  for (const Dialect dialect : {Dialect::e4m3fn, Dialect::e4m3fnuz}) {
    TestProblem decode(1, 3, 90, random_value, random_query);
    TestCache cache(4, 53, dialect);
    const std::vector<std::int32_t> block_table{2, 1};
    const std::int32_t seq_len = 90;
    std::vector<std::int32_t> slots, rows;
    for (std::int32_t t = 0; t < 90; ++t) {
      slots.push_back(block_table[t / 53] * 53 + t % 53);
      rows.push_back(t + 4);
      cache.write(slots.back(), t, random_value);
    }
    decode.problem.main_cache = cache.view;
    decode.problem.main.indices = slots.data();
    const auto from_cache =
        reference::sparse_mla_decode(decode.problem, Numerics{}, MlaWant::value);

    reference::KCacheGather gather;
    gather.cache = cache.view;
    gather.block_table = block_table.data();
    gather.seq_lens = &seq_len;
    gather.requests = 1;
    gather.rows = 100;
    gather.offset = 4;
    const auto workspace = reference::dequantize_and_gather_k_cache(gather);
    std::vector<std::uint16_t> kv;
    for (const double value : workspace.values) kv.push_back(reference::encode_bf16(value));

    reference::SparseMlaProblem prefill = decode.problem;
    prefill.main_cache = {reinterpret_cast<const std::uint8_t*>(kv.data()), 2 * kMlaDim, 100};
    prefill.main_cache.layout = KvLayout::rows;
    prefill.main.indices = rows.data();
    const SparseMlaPrefill from_rows = value_of(prefill);
    EXPECT_EQ(from_cache.out.value, from_rows.out.value);
    EXPECT_EQ(from_cache.lse.value, from_rows.lse.value);
  }
}

template <class T>
void point_at_something(T*& pointer) {
  pointer = reinterpret_cast<T*>(std::uintptr_t{256});
}

plumb_status prefill_with(void (*change)(plumb_sparse_mla_prefill_params&)) {
  plumb_sparse_mla_prefill_params params{};
  point_at_something(params.q);
  point_at_something(params.kv);
  point_at_something(params.out);
  point_at_something(params.candidates.indices);
  params.candidates.width = 1;
  params.heads = params.kv_rows = 1;
  params.key_dims = params.kv_row_stride = 512;
  params.out_row_stride = params.out_head_stride = 512;
  change(params);
  return device::kernels::sparse_mla_prefill().launch(&params);
}

plumb_status gather_with(void (*change)(plumb_dequantize_and_gather_k_cache_params&)) {
  plumb_dequantize_and_gather_k_cache_params params{};
  point_at_something(params.cache.data);
  point_at_something(params.block_table);
  point_at_something(params.seq_lens);
  point_at_something(params.out);
  params.cache.block_stride_bytes = 1152;
  params.cache.num_blocks = params.cache.page = 1;
  params.cache.dialect = PLUMB_E4M3FN;
  params.rows = params.pages = params.block_table_row_stride = 1;
  params.out_row_stride = params.out_request_stride = 512;
  change(params);
  return device::kernels::dequantize_and_gather_k_cache().launch(&params);
}

TEST(SparseMlaPrefill, LaunchRefusesWhatTheContractForbids) {
  using Params = plumb_sparse_mla_prefill_params;
  EXPECT_EQ(prefill_with([](Params&) {}), PLUMB_OK);  // no rows
  EXPECT_EQ(prefill_with([](Params& p) { p.key_dims = 640; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(prefill_with([](Params& p) { p.kv_row_stride = 511; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(prefill_with([](Params& p) { p.out_row_stride = 511; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(prefill_with([](Params& p) { p.candidates.width = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(prefill_with([](Params& p) { p.heads = 0; }), PLUMB_INVALID_ARGUMENT);
}

TEST(DequantizeAndGather, LaunchRefusesWhatTheContractForbids) {
  using Params = plumb_dequantize_and_gather_k_cache_params;
  EXPECT_EQ(gather_with([](Params&) {}), PLUMB_OK);  // no requests
  EXPECT_EQ(gather_with([](Params& p) { p.cache.layout = PLUMB_MLA_V32; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(gather_with([](Params& p) { p.offset = 2; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(gather_with([](Params& p) { p.out_row_stride = 500; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(gather_with([](Params& p) { p.seq_lens = nullptr; }), PLUMB_INVALID_ARGUMENT);
}

}  // namespace sparse_mla_prefill_test
}  // namespace plumb::tests
