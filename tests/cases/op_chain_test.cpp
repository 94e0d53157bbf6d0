// SPDX-License-Identifier: Apache-2.0
//
// A chain of ops on the simulator. Each op is judged on the bytes that the device gave it.
#include "cases/drivers/op_chain.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cases/tensors/fill.h"
#include "faults/faults.h"

namespace plumb::cases {

namespace op_chain_test {

constexpr std::int64_t kTokens = 5, kHidden = 256;

Row row(std::string_view op, const std::map<std::string, std::int64_t>& integers,
        const std::map<std::string, std::string>& words = {}) {
  return ad_hoc_row(find_op(op), integers, words);
}

Step all_live(std::uint64_t seed) { return {seed, kTokens, Fill::real, DeadRows::zero}; }

// The residual stream of one sublayer: input norm, mixing, a projection in place of the sublayer,
// mixing back.
void add_residual_stream(OpChain& chain) {
  chain.add("input_norm", row("mtp_input_rms_norm", {{"tokens", kTokens}, {"hidden", kHidden}}),
            all_live(1));
  chain.add("pre", row("mhc_pre", {{"tokens", kTokens}, {"hidden", kHidden}}), all_live(2));
  chain.project("pre", "residual", "input_norm", "out_hidden", 11);
  chain.add("post", row("mhc_post", {{"tokens", kTokens}, {"hidden", kHidden}}), all_live(3));
  chain.project("post", "x", "pre", "layer_input", 12);
  chain.feed("post", "residual", "pre", "residual");
  chain.feed("post", "post", "pre", "post");
  chain.feed("post", "comb", "pre", "comb");
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

std::int64_t compared(const OpChain::LinkVerdict& verdict) {
  std::int64_t elements = 0;
  for (const TensorReport& report : verdict.reports) elements += report.elements_compared;
  return elements;
}

class ChainTest : public testing::TestWithParam<std::string> {
 protected:
  static const device::Implementation& builtin() {
    return device::builtin_implementation(GetParam());
  }
};

TEST_P(ChainTest, EveryLinkIsRightOnItsOwnInputs) {
  OpChain chain(GetParam(), {}, builtin());
  add_residual_stream(chain);
  chain.start();
  chain.enqueue();
  chain.synchronize();
  const auto verdicts = chain.judge();
  ASSERT_EQ(verdicts.size(), 3u);
  EXPECT_EQ(failures(verdicts), "");
  for (const OpChain::LinkVerdict& verdict : verdicts) {
    EXPECT_TRUE(verdict.passed());
    EXPECT_GE(compared(verdict), kTokens * kHidden) << verdict.link;
  }
  // The fed bytes arrived, and differ from those that the fill had written.
  EXPECT_EQ(chain.stored("post", "comb").bytes(), chain.stored("pre", "comb").bytes());
  EXPECT_NE(chain.stored("post", "comb").bytes(), chain.input("post", "comb").bytes());
}

TEST_P(ChainTest, AReplayOfTheWholeChainIsRightForOtherInputs) {
  OpChain chain(GetParam(), {}, builtin());
  add_residual_stream(chain);
  chain.start();
  chain.device().begin_capture(chain.stream());
  chain.enqueue();
  const device::Graph graph = chain.device().end_capture(chain.stream());
  const device::GraphExec exec = chain.device().instantiate(graph);
  std::vector<Bytes> results;
  for (const std::uint64_t seed : {21, 22}) {
    HostTensor& hidden = chain.input("input_norm", "previous_hidden");
    fill_real(hidden, 0, hidden.rows(), seed, {});
    chain.start();
    chain.device().replay(exec, chain.stream());
    chain.synchronize();
    EXPECT_EQ(failures(chain.judge()), "");
    results.push_back(chain.stored("post", "out").bytes());
  }
  EXPECT_NE(results[0], results[1]);
}

// The link after the broken one is right for the inputs that it got, so only the broken one fails.
TEST_P(ChainTest, OnlyTheBrokenLinkIsBlamed) {
  const auto mutants = all_mutants();
  const auto mutant = std::find_if(mutants.begin(), mutants.end(), [](const Mutant& m) {
    return m.name == "mhc_mean_square_over_hidden";
  });
  ASSERT_NE(mutant, mutants.end());
  RunOptions options;
  options.platform = GetParam();
  const RunOptions broken = with_mutant(options, *mutant);
  OpChain chain(GetParam(), {}, broken.implementation(GetParam(), false));
  add_residual_stream(chain);
  chain.start();
  chain.enqueue();
  chain.synchronize();
  const auto verdicts = chain.judge();
  EXPECT_TRUE(verdicts[0].passed());
  EXPECT_FALSE(verdicts[1].passed());
  EXPECT_TRUE(verdicts[2].passed()) << failures(verdicts);
}

TEST_P(ChainTest, WhatDoesNotFitIsRefusedByName) {
  OpChain chain(GetParam(), {}, builtin());
  add_residual_stream(chain);
  EXPECT_THROW(chain.feed("post", "x", "pre", "comb"), std::invalid_argument);
  EXPECT_THROW(chain.feed("nobody", "x", "pre", "comb"), std::out_of_range);
  EXPECT_THROW(chain.project("post", "x", "input_norm", "positions", 1), std::invalid_argument);
  EXPECT_THROW(ad_hoc_row(find_op("rms_norm"), {{"hiden", 1}}), BadRow);
}

// A row may set how many tokens or rows a call has, but not fewer than its fill makes.
TEST_P(ChainTest, ARowThatItsInputsDoNotFitIntoIsRefused) {
  const Step full{.live = 4};
  const std::vector<std::pair<const char*, std::map<std::string, std::int64_t>>> rows{
      {"swa_decode_metadata", {{"requests", 4}, {"tokens", 3}}},
      {"pack_seq", {{"sequences", 4}, {"max_length", 4}, {"tokens", 1}}},
      {"combine_topk_swa_indices_ragged", {{"requests", 4}, {"tokens", 1}}},
      {"dequantize_and_gather_k_cache", {{"requests", 4}, {"seq_len", 9}, {"rows", 8}}}};
  for (const auto& [op, integers] : rows) {
    OpChain chain(GetParam(), {}, builtin());
    EXPECT_THROW(chain.add(op, ad_hoc_row(find_op(op), integers), full), BadRow) << op;
  }
}

INSTANTIATE_TEST_SUITE_P(Platforms, ChainTest,
                         testing::Values("sim-sm90", "sim-gfx942", "sim-gfx950"),
                         [](const auto& platform) {
                           std::string name = platform.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace op_chain_test

}  // namespace plumb::cases
