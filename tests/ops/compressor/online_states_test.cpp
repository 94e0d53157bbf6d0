// SPDX-License-Identifier: Apache-2.0
//
// Tests the ops on online states: their references against results computed by hand, the bounds
// against fp32 arithmetic in the orders of kernels, and what the launchers refuse.
#include "reference/compressor/online_states.h"

#include <gtest/gtest.h>
#include <plumb/ops/compressor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "cases/tensors/fill.h"
#include "device/op_entry.h"
#include "reference/compressor/appended_tokens.h"
#include "reference/compressor/commit_online_states.h"
#include "reference/tracked/other_forms.h"
#include "reference/tracked/tracked.h"

namespace plumb::device::kernels {
device::OpEntry online_compress();
device::OpEntry online_compress_prefix();
device::OpEntry commit_online_states();
}  // namespace plumb::device::kernels

namespace plumb::reference {
namespace online_states_test {

using Floats = std::vector<float>;

// Tokens of one group with `dim` channels and random numbers.
struct RandomTokens {
  RandomTokens(std::uint64_t seed, std::int64_t tokens, std::int64_t channels) : dim(channels) {
    const auto fill = [&](std::uint64_t salt, std::int64_t rows, double size, Floats& to) {
      for (std::int64_t i = 0; i < rows * dim; ++i) {
        const auto at = static_cast<std::uint64_t>(i);
        to.push_back(static_cast<float>(size * cases::normal(cases::mix(seed, salt), at)));
      }
    };
    fill(1, tokens, 1, kv);
    fill(2, tokens, 2, score);
    fill(3, kOnlineGroup, 1, ape);
  }
  OnlineTokens input() const {
    return {.kv = kv.data(),
            .score = score.data(),
            .ape = ape.data(),
            .head_dim = dim,
            .kv_row_stride = dim,
            .score_row_stride = dim};
  }
  float biased(std::int64_t token, std::int64_t phase, std::int64_t d) const {
    return score[token * dim + d] + ape[phase * dim + d];
  }

  std::int64_t dim;
  Floats kv, score, ape;
};

OnlineStates last_states(const OnlineTokens& input, const std::vector<OnlineSegment>& segments) {
  return online_states(input, segments, StateOf::last_token, {.chains = 1});
}

TEST(OnlineSegments, EndWithTheirGroups) {
  const float state = 0;
  const auto segments = online_segments(10, 260, 125, &state);
  ASSERT_EQ(segments.size(), 4U);
  const std::int64_t firsts[] = {10, 13, 141, 269}, tokens[] = {3, 128, 128, 1};
  for (std::size_t i = 0; i < segments.size(); ++i) {
    EXPECT_EQ(segments[i].first_token, firsts[i]);
    EXPECT_EQ(segments[i].tokens, tokens[i]);
    EXPECT_EQ(segments[i].phase, i == 0 ? 125 : 0);
    EXPECT_EQ(segments[i].state, i == 0 ? &state : nullptr);
    EXPECT_EQ(segments[i].closes(), i != 3);
  }
  EXPECT_TRUE(online_segments(0, 0, 5, &state).empty());
}

// The state has weight 2 under the score 1. The token has the score 1 + ln 2, so that the state's
// weight becomes 2 / 2 = 1, and the mean of 3 and 7 is 5.
TEST(OnlineStates, AddATokenToTheState) {
  const Floats kv = {7}, score = {1}, state = {1, 2, 3};
  Floats ape(kOnlineGroup);
  ape[5] = std::log(2.0F);
  const OnlineTokens input{kv.data(), score.data(), ape.data(), 1, 1, 1};
  const OnlineStates states = last_states(input, {{0, 1, 5, state.data()}});
  EXPECT_EQ(states.largest[0], double{1 + std::log(2.0F)});
  EXPECT_NEAR(states.sum.value[0], 2, 1e-7);
  EXPECT_NEAR(states.mean.value[0], 5, 1e-7);
}

TEST(OnlineStates, BeginWithTheirFirstToken) {
  const Floats kv = {7}, score = {-3}, ape(kOnlineGroup), fresh = {-INFINITY, 0, 0};
  const OnlineTokens input{kv.data(), score.data(), ape.data(), 1, 1, 1};
  for (const float* const state : {static_cast<const float*>(nullptr), fresh.data()}) {
    const OnlineStates states = last_states(input, {{0, 1, 9, state}});
    EXPECT_EQ(states.largest[0], -3);
    EXPECT_EQ(states.sum.value[0], 1);
    EXPECT_EQ(states.mean.value[0], 7);
  }
}

// A score of -inf has weight 0, in front of the largest score and behind it.
TEST(OnlineStates, GiveNoWeightToMinusInfinity) {
  const Floats kv = {1, 100, 3, 100}, score = {-1e4F, -INFINITY, 1e4F, -INFINITY};
  const Floats ape(kOnlineGroup);
  const OnlineTokens input{kv.data(), score.data(), ape.data(), 1, 1, 1};
  const OnlineStates states =
      online_states(input, {{0, 4, 0, nullptr}}, StateOf::every_token, {.chains = 1});
  EXPECT_EQ(states.mean.value, (std::vector<double>{1, 1, 3, 3}));
  EXPECT_EQ(states.sum.value, (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(states.largest, (std::vector<double>{-1e4, -1e4, 1e4, 1e4}));
}

// However a group is cut into steps, its mean is that of the whole softmax.
TEST(OnlineStates, HaveTheMeanOfTheWholeGroup) {
  constexpr std::int64_t kDim = 5;
  const RandomTokens tokens(1, kOnlineGroup, kDim);
  Floats state;
  OnlineStates states;
  std::int64_t begin = 0;
  for (const std::int64_t end : {1, 3, 100, 127, 128}) {
    const float* const before = begin == 0 ? nullptr : state.data();
    states = last_states(tokens.input(), {{begin, end - begin, begin, before}});
    state.assign(states.largest.begin(), states.largest.end());
    state.insert(state.end(), states.sum.value.begin(), states.sum.value.end());
    state.insert(state.end(), states.mean.value.begin(), states.mean.value.end());
    begin = end;
  }
  for (std::int64_t d = 0; d < kDim; ++d) {
    double sum = 0, weighted = 0;
    for (std::int64_t i = 0; i < kOnlineGroup; ++i) {
      const double weight = std::exp(double{tokens.biased(i, i, d)});
      sum += weight;
      weighted += weight * tokens.kv[i * kDim + d];
    }
    EXPECT_NEAR(states.mean.value[d], weighted / sum, 1e-6);
  }
}

// A state of one channel in fp32.
struct PlainState {
  float largest = -INFINITY, sum = 0, mean = 0;
};

PlainState plain_merged(const PlainState& a, const PlainState& b) {
  const float largest = std::max(a.largest, b.largest);
  const float of_a = a.sum * std::exp(a.largest - largest);
  const float of_b = b.sum * std::exp(b.largest - largest);
  return {largest, of_a + of_b, (a.mean * of_a + b.mean * of_b) / (of_a + of_b)};
}

// Tokens [begin, end) at once, as a part of a segment: the sum of weights and the undivided sum.
PlainState plain_part(const RandomTokens& tokens, std::int64_t begin, std::int64_t end,
                      std::int64_t phase, std::int64_t d) {
  PlainState part;
  for (std::int64_t i = begin; i < end; ++i) {
    part.largest = std::max(part.largest, tokens.biased(i, phase + i, d));
  }
  for (std::int64_t i = begin; i < end; ++i) {
    const float weight = std::exp(tokens.biased(i, phase + i, d) - part.largest);
    part.sum += weight;
    part.mean += weight * tokens.kv[i * tokens.dim + d];
  }
  return part;
}

// As SGLang computes a segment of a prefill: parts of 8 tokens, then all parts.
PlainState plain_segment(const RandomTokens& tokens, std::int64_t count, std::int64_t phase,
                         std::int64_t d) {
  std::vector<PlainState> parts;
  for (std::int64_t i = 0; i < count; i += 8) {
    parts.push_back(plain_part(tokens, i, std::min(i + 8, count), phase, d));
  }
  PlainState segment;
  for (const PlainState& part : parts) segment.largest = std::max(segment.largest, part.largest);
  for (const PlainState& part : parts) {
    segment.sum += part.sum * std::exp(part.largest - segment.largest);
  }
  for (const PlainState& part : parts) {
    segment.mean += part.mean * (std::exp(part.largest - segment.largest) / segment.sum);
  }
  return segment;
}

enum class Order { token_by_token, segment_at_once };

PlainState plain_state(const RandomTokens& tokens, std::int64_t count, std::int64_t phase,
                       std::int64_t d, const float* before, Order order) {
  PlainState state;
  if (before != nullptr) state = {before[0], before[1], before[2]};
  if (order == Order::segment_at_once) {
    const PlainState segment = plain_segment(tokens, count, phase, d);
    return before == nullptr ? segment : plain_merged(state, segment);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const PlainState token{tokens.biased(i, phase + i, d), 1, tokens.kv[i * tokens.dim + d]};
    state = before == nullptr && i == 0 ? token : plain_merged(state, token);
  }
  return state;
}

// Largest ratio of error to bound, of sums and of means.
struct OnlineShares {
  double sum = 0, mean = 0;
};

double share_of(double got, const Estimate& estimate, std::int64_t d) {
  return std::abs(got - estimate.centre(d)) / estimate.bound(d);
}

OnlineShares largest_shares(std::int64_t count, std::int64_t phase, Order order) {
  constexpr std::int64_t kDim = 32;
  OnlineShares shares;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const RandomTokens tokens(seed, count, kDim);
    Floats state;
    for (const float part : {1.5F, 2.75F, 0.3F}) state.insert(state.end(), kDim, part);
    const float* const before = phase == 0 ? nullptr : state.data();
    const OnlineStates states = last_states(tokens.input(), {{0, count, phase, before}});
    for (std::int64_t d = 0; d < kDim; ++d) {
      const Floats channel = {state[d], state[kDim + d], state[2 * kDim + d]};
      const PlainState got =
          plain_state(tokens, count, phase, d, before == nullptr ? nullptr : channel.data(), order);
      EXPECT_EQ(double{got.largest}, states.largest[d]);
      shares.sum = std::max(shares.sum, share_of(got.sum, states.sum, d));
      shares.mean = std::max(shares.mean, share_of(got.mean, states.mean, d));
    }
  }
  return shares;
}

TEST(OnlineStates, AreWithinTheirBoundInEveryOrder) {
  for (const auto& [count, phase] : {std::pair{1, 7}, {8, 0}, {8, 120}, {100, 20}, {128, 0}}) {
    for (const Order order : {Order::token_by_token, Order::segment_at_once}) {
      const OnlineShares shares = largest_shares(count, phase, order);
      EXPECT_LE(shares.sum, 1) << count << ' ' << phase;
      EXPECT_LE(shares.mean, 1) << count << ' ' << phase;
      EXPECT_GE(shares.sum, 0.02) << count << ' ' << phase;
      EXPECT_GE(shares.mean, 0.02) << count << ' ' << phase;
    }
  }
}

// A state as tracked arrays, [1, dim] each.
struct TrackedTokens {
  Tracked largest, sum, mean;
};

TrackedTokens tracked_token_by_token(const RandomTokens& tokens, std::int64_t count,
                                     const Numerics& numerics) {
  const auto row = [&](std::int64_t i, const auto& number_of) {
    std::vector<double> numbers;
    for (std::int64_t d = 0; d < tokens.dim; ++d) numbers.push_back(number_of(i, d));
    return Tracked(std::move(numbers), {1, tokens.dim}, numerics);
  };
  const auto score = [&](std::int64_t i) {
    return row(i, [&](std::int64_t t, std::int64_t d) { return double{tokens.biased(t, t, d)}; });
  };
  const auto kv = [&](std::int64_t i) {
    return row(i, [&](std::int64_t t, std::int64_t d) { return tokens.kv[t * tokens.dim + d]; });
  };
  TrackedTokens state{score(0), row(0, [](std::int64_t, std::int64_t) { return 1.0; }), kv(0)};
  for (std::int64_t i = 1; i < count; ++i) {
    const Tracked largest = max(state.largest, score(i));
    const Tracked a = state.sum * exp_by_exp2(state.largest - largest);
    const Tracked b = exp_by_exp2(score(i) - largest);
    const Tracked sum = a + b;
    state = {largest, sum, (state.mean * a + kv(i) * b) / sum};
  }
  return state;
}

// AppendedTokens derives the standard deviations of tracked arrays. Its largest errors are smaller,
// because effects of one rounding on a quotient cancel in them too.
TEST(AppendedTokens, HaveTheErrorsOfTrackedArrays) {
  constexpr std::int64_t kDim = 64;
  const Numerics numerics{.chains = 1};
  for (const std::int64_t count : {2, 5, 20}) {
    const RandomTokens tokens(7, count, kDim);
    SegmentNumbers numbers;
    for (std::int64_t i = 0; i < count * kDim; ++i) {
      numbers.score.push_back(tokens.biased(i / kDim, i / kDim, i % kDim));
      numbers.kv.push_back(tokens.kv[i]);
    }
    const OnlineStateRow derived = AppendedTokens(numbers, kDim, numerics).state(count);
    const TrackedTokens tracked = tracked_token_by_token(tokens, count, numerics);
    const auto expect_alike = [&](const Estimate& a, const Tracked& b) {
      for (std::int64_t d = 0; d < kDim; ++d) {
        EXPECT_NEAR(a.value[d], b.values()[d], 1e-14);
        EXPECT_NEAR(a.sigma[d] / b.sigma(d), 1, 0.05) << count << ' ' << d;
        EXPECT_LE(a.worst[d], b.worst(d) * 1.0001) << count << ' ' << d;
        EXPECT_GE(a.worst[d], a.sigma[d] * 1.7) << count << ' ' << d;
      }
      const Estimate whole = estimate_of(b, Format::f32);
      EXPECT_NEAR(a.row_mean_sigma[0] / whole.row_mean_sigma[0], 1, 0.05) << count;
      EXPECT_LE(a.row_systematic[0], whole.row_systematic[0] * 1.0001) << count;
      EXPECT_GE(a.row_systematic[0], whole.row_systematic[0] / 40) << count;
    };
    expect_alike(derived.sum, tracked.sum);
    expect_alike(derived.mean, tracked.mean);
  }
}

TEST(CommittedBank, IsThatOfTheAcceptedTokens) {
  EXPECT_EQ(committed_bank(1000, 1003, 8), 3);
  EXPECT_EQ(committed_bank(1000, 1000, 8), 0);
  EXPECT_EQ(committed_bank(1000, 1020, 8), 8);
  EXPECT_EQ(committed_bank(1000, 990, 8), 0);
  EXPECT_EQ(committed_bank(-1, 3, 8), 0);
  EXPECT_EQ(committed_bank(5, -1, 8), 0);
}

// 1024 = 8 * 128: the accepted tokens end a group, and the next one begins without a state.
TEST(CommittedBank, IsNoneAtTheEndOfAGroup) {
  EXPECT_EQ(committed_bank(1020, 1024, 8), 0);
  EXPECT_EQ(committed_bank(1016, 1030, 8), 0);
  EXPECT_EQ(committed_bank(1020, 1025, 8), 5);
}

TEST(OnlineStates, ImpossibleCompressionsAreRefused) {
  const auto status = [](auto spoil) {
    plumb_online_compress_params p{};
    p.head_dim = p.kv_row_stride = p.score_row_stride = p.out_row_stride = 2;
    p.states.row_stride = 6;
    spoil(p);
    return device::kernels::online_compress().launch(&p);
  };
  using P = plumb_online_compress_params;
  EXPECT_EQ(status([](P&) {}), PLUMB_OK);
  EXPECT_EQ(status([](P& p) { p.requests = p.tokens = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.requests = -1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.head_dim = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.states.row_stride = 5; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.kv_row_stride = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.score_row_stride = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.out_row_stride = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(device::kernels::online_compress().launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

template <class P>
P legal_banks() {
  P p{};
  p.head_dim = 2;
  p.verify_tokens = 3;
  p.bank_rows = 5;
  p.states.rows = 20;
  p.states.row_stride = 6;
  return p;
}

template <class P>
void expect_refusals(const device::OpEntry& op, const P& legal) {
  const auto status = [&](auto spoil) {
    P p = legal;
    spoil(p);
    return op.launch(&p);
  };
  EXPECT_EQ(status([](P&) {}), PLUMB_OK);
  EXPECT_EQ(status([](P& p) { p.requests = 1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.verify_tokens = 0; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.verify_tokens = 9; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.bank_rows = -1; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.states.rows = 19; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(status([](P& p) { p.states.row_stride = 5; }), PLUMB_INVALID_ARGUMENT);
  EXPECT_EQ(op.launch(nullptr), PLUMB_INVALID_ARGUMENT);
}

TEST(OnlineStates, ImpossibleBanksAreRefused) {
  auto prefix = legal_banks<plumb_online_compress_prefix_params>();
  prefix.kv_row_stride = prefix.score_row_stride = 2;
  expect_refusals(device::kernels::online_compress_prefix(), prefix);
  expect_refusals(device::kernels::commit_online_states(),
                  legal_banks<plumb_commit_online_states_params>());
  prefix.kv_row_stride = 1;
  EXPECT_EQ(device::kernels::online_compress_prefix().launch(&prefix), PLUMB_INVALID_ARGUMENT);
}

}  // namespace online_states_test
}  // namespace plumb::reference
