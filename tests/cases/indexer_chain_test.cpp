// SPDX-License-Identifier: Apache-2.0
//
// The indexer from end to end on simulated platforms: the cache's own writer stores the keys, a
// kernel computes logits from them, and the top-k kernels select from the logits left on the
// device.
#include <gtest/gtest.h>
#include <plumb/ops/cache.h>
#include <plumb/ops/indexer.h>
#include <plumb/ops/top_k.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tensors/fill.h"
#include "reference/formats/bfloat16.h"
#include "reference/formats/e4m3.h"
#include "reference/top_k/top_k_per_row_decode.h"
#include "reference/top_k/top_k_per_row_prefill.h"
#include "tests/support/device_buffers.h"
#include "tests/support/op_session.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::device::kernels {
device::OpEntry fp8_mqa_logits();
device::OpEntry fp8_paged_mqa_logits();
device::OpEntry indexer_k_quant_and_cache();
device::OpEntry top_k_per_row_prefill();
device::OpEntry top_k_per_row_decode();
}  // namespace plumb::device::kernels
namespace plumb::cases {
OpDefinition define_fp8_mqa_logits();
OpDefinition define_fp8_paged_mqa_logits();
}  // namespace plumb::cases

namespace plumb::cases {
namespace indexer_chain_test {

using tests::DeviceBuffers;

const std::vector<std::string> kPlatforms = {"sim-sm90", "sim-gfx942"};  // waves of 32 and 64

// Keys in the form that the cache's writer stores. Writer and reader of a cache block are two
// kernels that share no code, so their layouts may disagree (vLLM #52109). Logits must be within 2
// % of |q| |k| of those for the unquantised keys: six standard deviations of the error that
// rounding to four bits causes in a dot product of 128. Logits of other keys would be about 9 %
// away.
struct WrittenKeys {
  static constexpr std::int64_t kTokens = 150, kDim = 128, kHeads = 4, kPage = 64, kBlocks = 5;
  std::vector<std::uint16_t> keys;
  std::vector<std::uint8_t> q;
  std::vector<float> weights = {1, 2, -1, 3};
  std::vector<std::int32_t> blocks = {4, 1, 3};
  std::vector<std::int64_t> slots;

  WrittenKeys() {
    for (std::int64_t i = 0; i < kTokens * kDim; ++i) {
      const double size = std::ldexp(1.0, static_cast<int>(i / kDim % 5));
      keys.push_back(reference::encode_bf16(size * normal(1, static_cast<std::uint64_t>(i))));
    }
    for (std::int64_t i = 0; i < kHeads * kDim; ++i) {
      const double value = 8 * normal(2, static_cast<std::uint64_t>(i));
      q.push_back(reference::encode_e4m3(value, reference::Dialect::e4m3fn));
    }
    for (std::int64_t i = 0; i < kTokens; ++i) {
      slots.push_back(blocks[static_cast<std::size_t>(i / kPage)] * kPage + i % kPage);
    }
  }

  plumb_paged_cache write(DeviceBuffers& memory, std::int32_t shuffled) const {
    plumb_indexer_k_quant_and_cache_params p{};
    p.k = memory.upload(keys);
    p.slot_mapping = memory.upload(slots);
    p.cache.block_stride_bytes = kPage * (kDim + 4);
    p.cache.data = memory.upload(std::vector<std::uint8_t>(
        static_cast<std::size_t>(kBlocks * p.cache.block_stride_bytes), 0x7f));
    p.cache.num_blocks = kBlocks;
    p.cache.page = kPage;
    p.cache.dialect = PLUMB_E4M3FN;
    p.tokens = kTokens;
    p.k_row_stride = kDim;
    p.head_dim = p.quant_block_size = kDim;
    p.scale_form = PLUMB_SCALE_POWER_OF_TWO;
    p.amax_floor = 1e-4F;
    p.shuffled = shuffled;
    p.stream = memory.stream();
    EXPECT_EQ(device::kernels::indexer_k_quant_and_cache().launch(&p), PLUMB_OK);
    return p.cache;
  }

  std::vector<float> read(DeviceBuffers& memory, const plumb_paged_cache& cache,
                          std::int32_t shuffled) const {
    plumb_fp8_paged_mqa_logits_params p{};
    p.q = memory.upload(q);
    p.cache = cache;
    p.weights = memory.upload(weights);
    p.context_lens = memory.upload(std::vector<std::int32_t>{kTokens});
    p.block_table = memory.upload(blocks);
    p.logits = memory.upload(std::vector<float>(256, 0.0F));
    p.requests = p.context_lens_row_stride = 1;
    p.max_context_len = kTokens;
    p.logits_row_stride = 256;
    p.block_table_row_stride = 3;
    p.context_lens_dims = 2;
    p.next_n = 1;
    p.heads = kHeads;
    p.dim = kDim;
    p.shuffled = shuffled;
    p.q_dialect = PLUMB_E4M3FN;
    p.stream = memory.stream();
    EXPECT_EQ(device::kernels::fp8_paged_mqa_logits().launch(&p), PLUMB_OK);
    return memory.download(p.logits, static_cast<std::size_t>(kTokens));
  }

  // Logit of a token's unquantised key, and the allowed distance.
  std::pair<double, double> expected(std::int64_t token) const {
    double logit = 0, allowed = 0;
    for (std::int64_t head = 0; head < kHeads; ++head) {
      double score = 0, queries = 0, squares = 0;
      for (std::int64_t d = 0; d < kDim; ++d) {
        const double a = reference::decode_e4m3(q[static_cast<std::size_t>(head * kDim + d)],
                                                reference::Dialect::e4m3fn);
        const double b = reference::decode_bf16(keys[static_cast<std::size_t>(token * kDim + d)]);
        score += a * b;
        queries += a * a;
        squares += b * b;
      }
      const double weight = weights[static_cast<std::size_t>(head)];
      logit += weight * std::max(score, 0.0);
      allowed += 0.02 * std::abs(weight) * std::sqrt(queries * squares);
    }
    return {logit, allowed};
  }
};

TEST(WriterThenLogits, ReadWhatTheWriterOfTheCacheWrites) {
  const WrittenKeys data;
  for (const std::string& platform : kPlatforms) {
    for (const std::int32_t shuffled : {0, 1}) {
      DeviceBuffers memory(platform);
      const plumb_paged_cache cache = data.write(memory, shuffled);
      const std::vector<float> logits = data.read(memory, cache, shuffled);
      for (std::int64_t token = 0; token < WrittenKeys::kTokens; ++token) {
        const auto [expected, allowed] = data.expected(token);
        EXPECT_NEAR(logits[static_cast<std::size_t>(token)], expected, allowed)
            << platform << ", shuffled " << shuffled << ", token " << token;
      }
    }
  }
}

// Indices that a top-k kernel selects from logits copied to the host as a logits kernel left them,
// with NaN and poison beyond the lengths and in the padding.
std::vector<std::int32_t> select_prefill(const reference::TopKPerRowPrefill& input,
                                         std::string_view platform) {
  DeviceBuffers memory(platform);
  const auto* bytes = static_cast<const float*>(input.logits);
  std::vector<float> logits(bytes, bytes + input.num_rows * input.logits_row_stride);
  plumb_top_k_per_row_prefill_params p{};
  p.logits = memory.upload(logits);
  p.row_starts =
      memory.upload(std::vector<std::int32_t>(input.row_starts, input.row_starts + input.num_rows));
  p.row_ends =
      memory.upload(std::vector<std::int32_t>(input.row_ends, input.row_ends + input.num_rows));
  p.indices = memory.upload(
      std::vector<std::int32_t>(static_cast<std::size_t>(input.num_rows * input.k), 0x7ff57ff5));
  p.rows = input.num_rows;
  p.columns = input.columns;
  p.logits_row_stride = input.logits_row_stride;
  p.logits_column_stride = 1;
  p.k = p.indices_row_stride = input.k;
  p.stream = memory.stream();
  EXPECT_EQ(device::kernels::top_k_per_row_prefill().launch(&p), PLUMB_OK);
  return memory.download(p.indices, static_cast<std::size_t>(input.num_rows * input.k));
}

std::vector<std::int32_t> select_decode(const reference::TopKPerRowDecode& input,
                                        std::string_view platform) {
  DeviceBuffers memory(platform);
  const auto* bytes = static_cast<const float*>(input.logits);
  const std::int64_t requests = input.num_rows / input.next_n;
  plumb_top_k_per_row_decode_params p{};
  p.logits =
      memory.upload(std::vector<float>(bytes, bytes + input.num_rows * input.logits_row_stride));
  p.seq_lens = memory.upload(std::vector<std::int32_t>(
      input.seq_lens, input.seq_lens + requests * input.seq_lens_row_stride));
  p.indices = memory.upload(
      std::vector<std::int32_t>(static_cast<std::size_t>(input.num_rows * input.k), 0x7ff57ff5));
  p.rows = input.num_rows;
  p.columns = input.columns;
  p.logits_row_stride = input.logits_row_stride;
  p.logits_column_stride = 1;
  p.seq_lens_row_stride = input.seq_lens_row_stride;
  p.seq_lens_dims = input.seq_lens_dims;
  p.next_n = input.next_n;
  p.k = p.indices_row_stride = input.k;
  p.stream = memory.stream();
  EXPECT_EQ(device::kernels::top_k_per_row_decode().launch(&p), PLUMB_OK);
  return memory.download(p.indices, static_cast<std::size_t>(input.num_rows * input.k));
}

void expect_selected(const std::vector<reference::LogitWindow>& windows, std::int32_t k,
                     const std::vector<std::int32_t>& indices, const std::string& what) {
  const auto wrong = reference::check_selection(windows, k, indices.data());
  for (std::size_t row = 0; row < wrong.size(); ++row) {
    EXPECT_TRUE(wrong[row].empty())
        << what << ", row " << row << " of length " << windows[row].length;
  }
}

constexpr std::int32_t kTopK = 64;

// Batches with contexts of K - 1, K, K + 1 and 4 K tokens; next_n 2 (two query tokens per request).
// The logits kernel does not clean columns beyond the lengths.
TEST(IndexerThenTopK, DecodeSelectsFromTheTokensOfEachRow) {
  const OpDefinition op = define_fp8_paged_mqa_logits();
  for (const std::string& platform : kPlatforms) {
    for (const std::int64_t length : {kTopK - 1, kTopK, kTopK + 1, 4 * kTopK}) {
      const Row row = row_of(op, {{"requests", 3},
                                  {"next_n", 2},
                                  {"length", length},
                                  {"gap", 100},
                                  {"heads", 8},
                                  {"page", 16}});
      const Step step{.seed = 8, .live = 2, .dead_rows = DeadRows::huge};
      const device::OpEntry entry = device::kernels::fp8_paged_mqa_logits();
      OpSession session(op, row, step, platform);
      ASSERT_EQ(session.launch(entry), PLUMB_OK);
      for (const TensorReport& report : session.judge(step, entry)) {
        EXPECT_TRUE(report.passed()) << report.failures.front();
      }
      const TensorSet& tensors = session.download();
      const HostTensor& logits = tensors.at("logits");
      EXPECT_TRUE(std::isnan(logits.value(0, logits.columns() - 1))) << "no garbage to be seen";
      reference::TopKPerRowDecode input;
      input.logits = logits.data<float>();
      input.seq_lens = tensors.at("context_lens").data<std::int32_t>();
      input.num_rows = 6;
      input.columns = length + 100;
      input.logits_row_stride = logits.columns();
      input.seq_lens_row_stride = 2;
      input.seq_lens_dims = 2;
      input.next_n = 2;
      input.k = kTopK;
      expect_selected(windows_of(input), kTopK, select_decode(input, platform),
                      platform + ", context " + std::to_string(length));
    }
  }
}

// For windows that begin above column 0, logits with global and with row-local columns give the
// same row-local indices.
TEST(IndexerThenTopK, PrefillSelectsRowLocallyFromEitherForm) {
  const OpDefinition op = define_fp8_mqa_logits();
  const device::OpEntry entry = device::kernels::fp8_mqa_logits();
  for (const std::string& platform : kPlatforms) {
    for (const std::int64_t length : {kTopK - 1, kTopK, kTopK + 1, 4 * kTopK}) {
      std::vector<std::vector<std::int32_t>> selected;
      for (const std::int64_t row_local : {0, 1}) {
        const Row row = row_of(op, {{"rows", 5},
                                    {"requests", 2},
                                    {"length", length},
                                    {"length_step", 1},
                                    {"lead", 70},
                                    {"gap", 9},
                                    {"heads", 8},
                                    {"row_local", row_local}});
        const Step step{.seed = 9, .live = 4, .dead_rows = DeadRows::nan};
        OpSession session(op, row, step, platform);
        ASSERT_EQ(session.launch(entry), PLUMB_OK);
        for (const TensorReport& report : session.judge(step, entry)) {
          EXPECT_TRUE(report.passed()) << report.failures.front();
        }
        const TensorSet& tensors = session.download();
        const HostTensor& logits = tensors.at("logits");
        const auto* starts = tensors.at("starts").data<std::int32_t>();
        const auto* ends = tensors.at("ends").data<std::int32_t>();
        std::vector<std::int32_t> first(5, 0), behind(5);
        for (std::size_t r = 0; r < 5; ++r) {
          if (row_local == 0) first[r] = starts[r];
          behind[r] = first[r] + ends[r] - starts[r];
        }
        reference::TopKPerRowPrefill input;
        input.logits = logits.data<float>();
        input.row_starts = first.data();
        input.row_ends = behind.data();
        input.num_rows = 5;
        input.columns = logits.columns();
        input.logits_row_stride = logits.columns();
        input.k = kTopK;
        selected.push_back(select_prefill(input, platform));
        expect_selected(windows_of(input), kTopK, selected.back(),
                        platform + ", window " + std::to_string(length));
      }
      EXPECT_EQ(selected[0], selected[1]) << platform << ", window " << length;
    }
  }
}

}  // namespace indexer_chain_test
}  // namespace plumb::cases
