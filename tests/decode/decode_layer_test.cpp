// SPDX-License-Identifier: Apache-2.0
//
// A whole decode layer on the simulator: MTP input norm, mhc_pre, q and kv norms, cache insert,
// indexer, top-k, ragged mapping, sparse MLA over window and compressed cache, inverse RoPE,
// mhc_post, router. Each op reads what the device stored before it, and is judged on exactly those
// bytes. The projections between them are seeded linear maps. Compressed entries and earlier tokens
// are functions of request and position only.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cases/drivers/op_chain.h"
#include "cases/tensors/fill.h"
#include "faults/faults.h"

namespace plumb::cases {

namespace decode_layer_test {

using Integers = std::map<std::string, std::int64_t>;
using Words = std::map<std::string, std::string>;

// Four requests: with 1 compressed state, fewer than the top-k keeps; just past the window of 128;
// far past it; and inside it, with 19 states, more than the top-k keeps.
constexpr std::array<std::int64_t, 4> kPositions{3, 130, 200, 77};
constexpr std::int64_t kTokens = kPositions.size(), kHidden = 512, kHeads = 2, kLora = 256;
constexpr std::int64_t kWindow = 128, kPage = 64, kContext = 256, kRatio = 4;
constexpr std::int64_t kTopK = 16, kIndexHeads = 8;
constexpr std::int64_t kBlocks = kContext / kPage;          // entries of a request's block table
constexpr std::int64_t kStates = kContext / kRatio;         // compressed states of a request
constexpr std::int64_t kRowsOfWriter = kTokens * kContext;  // so that the pool has all blocks
constexpr std::int64_t kNewest = kRowsOfWriter - kTokens;   // first row of this step's tokens

std::int64_t compressed_length(std::int64_t request) { return (kPositions[request] + 1) / kRatio; }

// Physical blocks of the window cache, in arbitrary order. 0: not used.
std::int64_t block_of(std::int64_t request, std::int64_t block) {
  constexpr std::array<std::array<std::int64_t, 4>, 4> kTable{
      {{7, 0, 0, 0}, {3, 11, 5, 0}, {1, 9, 4, 12}, {10, 2, 0, 0}}};
  return kTable[request][block];
}
std::int64_t slot_of(std::int64_t request, std::int64_t position) {
  return block_of(request, position / kPage) * kPage + position % kPage;
}
std::int64_t compressed_block_of(std::int64_t request) {
  constexpr std::array<std::int64_t, 4> kTable{3, 1, 4, 2};
  return kTable[request];
}

Row row(std::string_view op, const Integers& integers, const Words& words = {}) {
  return ad_hoc_row(find_op(op), integers, words);
}

Step live(std::int64_t rows, std::uint64_t seed) {
  return {seed, rows, Fill::real, DeadRows::zero};
}

template <class T>
void set(OpChain& chain, std::string_view link, std::string_view tensor,
         const std::function<std::int64_t(std::int64_t)>& value) {
  HostTensor& host = chain.input(link, tensor);
  for (std::int64_t i = 0; i < host.elements(); ++i) host.data<T>()[i] = static_cast<T>(value(i));
}

// Each request has one physical block of states: all entries of its table name that block.
void set_compressed_table(OpChain& chain, std::string_view link) {
  const std::int64_t columns = chain.input(link, "block_table").columns();
  set<std::int32_t>(chain, link, "block_table",
                    [columns](std::int64_t i) { return compressed_block_of(i / columns); });
}

std::int64_t position(std::int64_t token) { return kPositions[static_cast<std::size_t>(token)]; }

// cos | sin of every position, as models compute them.
void set_angles(OpChain& chain, std::string_view link) {
  HostTensor& table = chain.input(link, "cos_sin");
  const std::int64_t half = table.columns() / 2;
  for (std::int64_t p = 0; p < table.rows(); ++p) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p) *
                           std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half));
      table.row<float>(p)[i] = static_cast<float>(std::cos(angle));
      table.row<float>(p)[half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

// Slot of row i of a cache writer: earlier tokens first, then this step's; -1: no token.
std::int64_t writer_slot(std::int64_t i) {
  if (i >= kNewest) return slot_of(i - kNewest, position(i - kNewest));
  const std::int64_t request = i / kContext, at = i % kContext;
  return at < position(request) ? slot_of(request, at) : -1;
}
std::int64_t state_slot(std::int64_t i) {
  const std::int64_t request = i / kStates, at = i % kStates;
  return at < compressed_length(request) ? compressed_block_of(request) * kPage + at : -1;
}

void add_projections(OpChain& chain) {
  const Integers stream{{"tokens", kTokens}, {"hidden", kHidden}};
  chain.add("input_norm", row("mtp_input_rms_norm", stream), live(kTokens, 1));
  chain.add("attn_pre", row("mhc_pre", stream), live(kTokens, 2));
  chain.project("attn_pre", "residual", "input_norm", "out_hidden", 101);
  chain.add("qkv_norm",
            row("q_kv_rms_norm", {{"tokens", kTokens}, {"q_hidden", kLora}, {"kv_hidden", 512}}),
            live(kTokens, 3));
  chain.project("qkv_norm", "q", "attn_pre", "layer_input", 102);
  chain.project("qkv_norm", "kv", "attn_pre", "layer_input", 103);
  chain.add("q_norm", row("q_head_rms_norm_rope", {{"tokens", kTokens}, {"heads", kHeads}}),
            live(kTokens, 4));
  chain.project("q_norm", "q", "qkv_norm", "out_q", 104);
}

void add_caches(OpChain& chain) {
  chain.add("insert",
            row("quantize_and_insert_k_cache", {{"tokens", kRowsOfWriter}, {"page", kPage}}),
            live(kRowsOfWriter, 5));
  set<std::int64_t>(chain, "insert", "slot_mapping", writer_slot);
  chain.feed_rows("insert", "kv", "qkv_norm", "out_kv", {.to_first = kNewest, .count = kTokens});
  chain.add("compressed",
            row("quantize_and_insert_k_cache", {{"tokens", kTokens * kStates}, {"page", kPage}}),
            live(kTokens * kStates, 6));
  set<std::int64_t>(chain, "compressed", "slot_mapping", state_slot);
  chain.add("indexer_keys",
            row("indexer_k_quant_and_cache", {{"tokens", kTokens * kStates}, {"page", kPage}}),
            live(kTokens * kStates, 7));
  set<std::int64_t>(chain, "indexer_keys", "slot_mapping", state_slot);
}

void add_indexer(OpChain& chain) {
  chain.add("indexer_q",
            row("indexer_q_rope_quant",
                {{"tokens", kTokens}, {"heads", kIndexHeads}, {"positions", kContext}}),
            live(kTokens, 8));
  chain.project("indexer_q", "q", "qkv_norm", "out_q", 105);
  chain.project("indexer_q", "weights", "attn_pre", "layer_input", 106);
  set<std::int64_t>(chain, "indexer_q", "positions", position);
  set_angles(chain, "indexer_q");
  chain.add(
      "logits",
      row("fp8_paged_mqa_logits",
          {{"requests", kTokens}, {"heads", kIndexHeads}, {"length", kStates}, {"page", kPage}}),
      live(kTokens, 9));
  chain.feed("logits", "q", "indexer_q", "q_out");
  chain.feed("logits", "weights", "indexer_q", "weights_out");
  chain.feed_rows("logits", "cache", "indexer_keys", "cache", {.count = 5});
  set<std::int32_t>(chain, "logits", "context_lens", compressed_length);
  set_compressed_table(chain, "logits");
  chain.add("top_k",
            row("top_k_per_row_decode", {{"requests", kTokens}, {"k", kTopK}, {"length", 256}}),
            live(kTokens, 10));
  chain.feed("top_k", "logits", "logits", "logits");
  set<std::int32_t>(chain, "top_k", "seq_lens", compressed_length);
}

void add_metadata(OpChain& chain) {
  chain.add("window",
            row("swa_decode_metadata", {{"requests", kTokens},
                                        {"context", kContext},
                                        {"window", kWindow},
                                        {"page", kPage},
                                        {"more_buffer_tokens", 0}}),
            live(kTokens, 11));
  set<std::int32_t>(chain, "window", "query_start_loc", [](std::int64_t i) { return i; });
  set<std::int32_t>(chain, "window", "seq_lens", [](std::int64_t i) { return position(i) + 1; });
  set<std::int64_t>(chain, "window", "slot_mapping",
                    [](std::int64_t i) { return slot_of(i, position(i)); });
  set<std::int32_t>(chain, "window", "block_table",
                    [](std::int64_t i) { return block_of(i / kBlocks, i % kBlocks); });
  chain.add("ragged_window",
            row("build_ragged_indices_from_dense", {{"rows", kTokens}, {"width", kWindow}}),
            live(kTokens, 12));
  chain.feed("ragged_window", "indices", "window", "swa_indices");
  chain.feed("ragged_window", "lengths", "window", "swa_lens");
  chain.add("ragged_top_k",
            row("compute_global_topk_ragged_indices_and_indptr",
                {{"tokens", kTokens}, {"topk", kTopK}, {"blocks", 1}, {"block_size", kPage}}),
            live(kTokens, 13));
  chain.feed("ragged_top_k", "topk_indices", "top_k", "indices");
  chain.feed("ragged_top_k", "token_to_req", "window", "token_to_req");
  chain.feed("ragged_top_k", "is_valid_token", "window", "is_valid_token");
  set_compressed_table(chain, "ragged_top_k");
}

void add_attention(OpChain& chain) {
  chain.add("attention",
            row("sparse_mla_decode",
                {{"requests", kTokens},
                 {"heads", kHeads},
                 {"width", kWindow},
                 {"page", kPage},
                 {"extra_width", kTopK},
                 {"extra_page", kPage}},
                {{"form", "ragged"}}),
            live(kTokens, 14));
  chain.feed("attention", "q", "q_norm", "out");
  chain.feed_rows("attention", "main_cache", "insert", "cache", {.count = 13});
  chain.feed_rows("attention", "main_indices", "ragged_window", "flat",
                  {.count = kTokens * kWindow});
  chain.feed("attention", "main_indptr", "ragged_window", "indptr");
  chain.feed_rows("attention", "extra_cache", "compressed", "cache", {.count = 5});
  chain.feed_rows("attention", "extra_indices", "ragged_top_k", "flat", {.count = kTokens * kTopK});
  chain.feed("attention", "extra_indptr", "ragged_top_k", "indptr");
  chain.add("inverse_rope", row("inverse_rope", {{"tokens", kTokens}, {"heads", kHeads}}),
            live(kTokens, 4));  // same positions and angles as q_norm
  chain.feed("inverse_rope", "x_before", "attention", "out");
  chain.feed("inverse_rope", "positions", "q_norm", "positions");
}

void add_rest(OpChain& chain) {
  const Integers stream{{"tokens", kTokens}, {"hidden", kHidden}};
  chain.add("attn_post", row("mhc_post", stream), live(kTokens, 16));
  chain.project("attn_post", "x", "inverse_rope", "x", 107);
  chain.feed("attn_post", "residual", "attn_pre", "residual");
  chain.feed("attn_post", "post", "attn_pre", "post");
  chain.feed("attn_post", "comb", "attn_pre", "comb");
  chain.add("ffn_pre", row("mhc_pre", stream), live(kTokens, 17));
  chain.feed("ffn_pre", "residual", "attn_post", "out");
  chain.add("router", row("sqrt_softplus_topk", {{"tokens", kTokens}}), live(kTokens, 18));
  chain.project("router", "logits", "ffn_pre", "layer_input", 108);
}

void build(OpChain& chain) {
  add_projections(chain);
  add_caches(chain);
  add_indexer(chain);
  add_metadata(chain);
  add_attention(chain);
  add_rest(chain);
}

std::string failures(const std::vector<OpChain::LinkVerdict>& verdicts) {
  std::string text;
  for (const OpChain::LinkVerdict& verdict : verdicts) {
    for (const std::string& line : verdict.damage) text += verdict.link + ": " + line + "\n";
    for (const TensorReport& report : verdict.reports) {
      for (const std::string& line : report.failures) text += verdict.link + ": " + line + "\n";
    }
  }
  return text;
}

class DecodeLayer : public testing::TestWithParam<std::string> {};

TEST_P(DecodeLayer, EveryOpIsRightOnTheBytesBeforeIt) {
  OpChain chain(GetParam(), {}, device::builtin_implementation(GetParam()));
  build(chain);
  chain.start();
  chain.enqueue();
  chain.synchronize();
  const auto verdicts = chain.judge();
  EXPECT_EQ(verdicts.size(), 18u);
  EXPECT_EQ(failures(verdicts), "");
  for (const OpChain::LinkVerdict& verdict : verdicts) {
    const bool compared =
        std::any_of(verdict.reports.begin(), verdict.reports.end(),
                    [](const TensorReport& r) { return r.elements_compared > 0; });
    EXPECT_TRUE(compared) << verdict.link;
  }
}

// No single op can check this: the metadata must name slots that the layer's caches have filled.
TEST_P(DecodeLayer, EveryCandidateIsATokenOfItsRequest) {
  OpChain chain(GetParam(), {}, device::builtin_implementation(GetParam()));
  build(chain);
  chain.start();
  chain.enqueue();
  chain.synchronize();
  chain.judge();
  const auto* indptr = chain.stored("attention", "main_indptr").data<std::int32_t>();
  const auto* flat = chain.stored("attention", "main_indices").data<std::int32_t>();
  const auto* extra_indptr = chain.stored("attention", "extra_indptr").data<std::int32_t>();
  const auto* extra = chain.stored("attention", "extra_indices").data<std::int32_t>();
  for (std::int64_t r = 0; r < kTokens; ++r) {
    const std::int64_t first = std::max<std::int64_t>(position(r) - kWindow + 1, 0);
    ASSERT_EQ(indptr[r + 1] - indptr[r], position(r) + 1 - first);
    for (std::int64_t p = first; p <= position(r); ++p) {
      EXPECT_EQ(flat[indptr[r] + p - first], slot_of(r, p)) << r << ", " << p;
    }
    ASSERT_EQ(extra_indptr[r + 1] - extra_indptr[r], std::min(kTopK, compressed_length(r)));
    for (std::int64_t i = extra_indptr[r]; i < extra_indptr[r + 1]; ++i) {
      EXPECT_EQ(extra[i] / kPage, compressed_block_of(r));
      EXPECT_LT(extra[i] % kPage, compressed_length(r));
    }
  }
}

TEST_P(DecodeLayer, AReplayGivesTheSameBits) {
  OpChain chain(GetParam(), {}, device::builtin_implementation(GetParam()));
  build(chain);
  chain.start();
  chain.enqueue();
  chain.synchronize();
  chain.judge();
  const auto eager = chain.stored("router", "weights").bytes();
  chain.start();
  chain.device().begin_capture(chain.stream());
  chain.enqueue();
  const device::Graph graph = chain.device().end_capture(chain.stream());
  chain.device().replay(chain.device().instantiate(graph), chain.stream());
  chain.synchronize();
  EXPECT_EQ(failures(chain.judge()), "");
  EXPECT_EQ(chain.stored("router", "weights").bytes(), eager);
}

// A fault in one op is blamed on that op only, although all later ops read its results.
TEST_P(DecodeLayer, OnlyTheBrokenOpIsBlamed) {
  for (const std::string name : {"mhc_mean_square_over_hidden", "mhc_comb_transposed"}) {
    const auto mutants = all_mutants();
    const auto mutant = std::find_if(mutants.begin(), mutants.end(),
                                     [&](const Mutant& m) { return m.name == name; });
    ASSERT_NE(mutant, mutants.end()) << name;
    RunOptions options;
    options.platform = GetParam();
    const RunOptions broken = with_mutant(options, *mutant);
    OpChain chain(GetParam(), {}, broken.implementation(GetParam(), false));
    build(chain);
    chain.start();
    chain.enqueue();
    chain.synchronize();
    for (const OpChain::LinkVerdict& verdict : chain.judge()) {
      EXPECT_EQ(verdict.passed(), verdict.op != mutant->op) << name << " at " << verdict.link;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Platforms, DecodeLayer,
                         testing::Values("sim-sm90", "sim-gfx942", "sim-gfx950"),
                         [](const auto& platform) {
                           std::string name = platform.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace decode_layer_test

}  // namespace plumb::cases
