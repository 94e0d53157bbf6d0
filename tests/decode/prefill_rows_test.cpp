// SPDX-License-Identifier: Apache-2.0
//
// Results of prefills against other ways to the same result. Decode rows do not depend on prefills
// in their batch. A prompt in chunks leaves the caches of a whole prompt. A prefill computes what a
// decode of the same tokens does. Also: the contents of the top-k buffer.
#include <gtest/gtest.h>

#include <bit>

#include "faults/decode/top_k_policies.h"
#include "tests/support/prefill_serving.h"

namespace plumb::tests {

namespace prefill_rows_test {

using device::decode::TopKPolicy;

class PrefillRows : public testing::TestWithParam<std::string> {};

Batch decodes(std::int64_t requests) {
  Batch batch;
  for (std::int64_t i = 1; i <= requests; ++i) batch.push_back({static_cast<std::uint64_t>(i)});
  return batch;
}

// Rows of `requests` decodes, with the prefills of `beside` in the batch.
Rows decoded(const std::string& platform, std::int64_t requests, const Batch& beside) {
  PrefillServing serving({platform, small_geometry(24, 0, 160)});
  for (std::int64_t i = 1; i <= requests; ++i) {
    serving.admit(static_cast<std::uint64_t>(i), (i * 83) % 300);
  }
  Batch batch = decodes(requests);
  batch.insert(batch.end(), beside.begin(), beside.end());
  serving.step(batch);
  Rows rows = serving.out();
  rows.resize(static_cast<std::size_t>(requests * serving.engine().geometry().hidden));
  return rows;
}

// Decodes have a tile plan of their own, which does not depend on prefills. mHC's arithmetic is the
// same for all batches of up to 16 tokens, and for all batches of more.
TEST_P(PrefillRows, RowsThatDecodeAreThoseOfAPureBatch) {
  EXPECT_EQ(decoded(GetParam(), 5, {prefill(31, 9)}), decoded(GetParam(), 5, {}));
  EXPECT_EQ(decoded(GetParam(), 18, {prefill(31, 1), prefill(32, 60)}),
            decoded(GetParam(), 18, {}));
}

double distance(const Rows& a, std::int64_t row_of_a, const Rows& b, std::int64_t row_of_b,
                std::int64_t columns) {
  double sum = 0;
  for (std::int64_t i = 0; i < columns; ++i) {
    const auto number = [](std::uint16_t bits) {
      return std::bit_cast<float>(std::uint32_t{bits} << 16);
    };
    const double difference = number(a[static_cast<std::size_t>(row_of_a * columns + i)]) -
                              number(b[static_cast<std::size_t>(row_of_b * columns + i)]);
    sum += difference * difference;
  }
  return sum;
}

// Rows of two runs differ by rounding only: each is far nearer to its own row than to any other
// row.
void expect_same_rows(const Rows& got, const Rows& wanted, std::int64_t rows) {
  constexpr double kFar = 256;  // ratio of squared distances: 16 times as far
  ASSERT_EQ(got.size(), wanted.size());
  const std::int64_t columns = std::ssize(wanted) / rows;
  for (std::int64_t row = 0; row < rows; ++row) {
    const double own = distance(got, row, wanted, row, columns);
    for (std::int64_t other = 0; other < rows; ++other) {
      if (other == row) continue;
      EXPECT_LT(kFar * own, distance(got, row, wanted, other, columns)) << row << ", " << other;
    }
  }
}

// mHC rounds differently for up to 16 tokens and for more.
TEST_P(PrefillRows, RowsThatDecodeStayTheirOwnInALargerBatch) {
  expect_same_rows(decoded(GetParam(), 5, {prefill(31, 60)}), decoded(GetParam(), 5, {}), 5);
}

// One engine prefills the same tokens that another decodes, in two chunks after a decode. The two
// use different kernels on equal caches.
TEST_P(PrefillRows, APrefillComputesWhatADecodeDoes) {
  const Geometry geometry = small_geometry(8, 1, 160);
  PrefillServing prefilling({GetParam(), geometry}), decoding({GetParam(), geometry});
  const std::int64_t tokens[] = {5, 90, 61, 30, 140, 300, 127};
  Batch prefills{{9, 1}}, decodes;
  for (PrefillServing* serving : {&prefilling, &decoding}) serving->admit(9, 200);
  for (std::uint64_t id = 1; id <= 7; ++id) {
    for (PrefillServing* serving : {&prefilling, &decoding}) serving->admit(id, tokens[id - 1]);
    prefills.push_back(prefill(id, 2));
    decodes.push_back({id, 2});
  }
  prefilling.observe();
  prefilling.step(prefills);
  decoding.step(decodes);
  EXPECT_EQ(candidates_of_nobody(prefilling.calls()), 0);
  Rows got = prefilling.out();
  got.erase(got.begin(), got.begin() + geometry.hidden);
  expect_same_rows(got, decoding.out(), 14);
}

// `chunked` and `shifted` have more than 16 tokens in each chunk, so every op does the same
// arithmetic per row as for the whole prompt. Their chunks begin at each place of a group of 4
// tokens, and within a group of 128. `uneven` has chunks of fewer tokens, in which mHC rounds
// differently: only the first layer's tokens do not depend on mHC.
TEST_P(PrefillRows, APromptInChunksLeavesTheCachesOfAWholeOne) {
  PrefillServing whole({GetParam()}), chunked({GetParam()}), shifted({GetParam()}),
      uneven({GetParam()});
  whole.step({prefill(1, 141)});
  for (const std::int64_t tokens : {17, 64, 60}) chunked.step({prefill(1, tokens)});
  for (const std::int64_t tokens : {18, 21, 20, 37, 45}) shifted.step({prefill(1, tokens)});
  for (const std::int64_t tokens : {3, 137, 1}) uneven.step({prefill(1, tokens)});
  ASSERT_EQ(whole.caches().size(), 6u);
  for (const std::string& cache : whole.caches()) {
    const auto bytes = whole.block<std::uint8_t>(cache);
    EXPECT_EQ(chunked.block<std::uint8_t>(cache), bytes) << cache;
    EXPECT_EQ(shifted.block<std::uint8_t>(cache), bytes) << cache;
    if (cache == "layer 0 window cache") {
      EXPECT_EQ(uneven.block<std::uint8_t>(cache), bytes) << cache;
    }
  }
}

// Padding tokens fill a mixed batch up to a captured size.
TEST_P(PrefillRows, TokensOfNobodyReachNoOtherRow) {
  const Batch batch{{1}, {2}, prefill(3, 3)};
  PrefillServing plain({GetParam()});
  plain.admit(1, 5);
  plain.admit(2, 90);
  plain.step(batch);
  for (const std::int64_t key : {0, 12345}) {
    PrefillServing padded({.platform = GetParam(), .mode = GraphMode::piecewise});
    padded.admit(1, 5);
    padded.admit(2, 90);
    padded.observe();
    padded.step_padded(batch, {.token_key = key});
    EXPECT_EQ(padded.engine().plan().tokens, 8);
    EXPECT_EQ(failures(padded.calls()), "");
    EXPECT_EQ(padded.out(), plain.out());
  }
}

// First token with a wrong row in the top-k buffer; "": none. A right row names distinct states
// that the token may attend, min(k, number of states) of them, and -1 after them.
std::string top_k_damage(PrefillServing& serving) {
  const auto& plan = serving.engine().plan();
  const std::int64_t k = serving.engine().geometry().top_k;
  const auto all = serving.block<std::int32_t>("top_k");
  for (std::int64_t token = 0; token < plan.tokens; ++token) {
    const std::int64_t states = plan.state_lens[static_cast<std::size_t>(token)];
    const std::int64_t kept = std::min(states, k);
    const auto* row = &all[static_cast<std::size_t>(token * k)];
    const std::set<std::int32_t> named(row, row + kept);
    const bool inside = named.empty() || (*named.begin() >= 0 && *named.rbegin() < states);
    const bool ends = std::all_of(row + kept, row + k, [](std::int32_t i) { return i == -1; });
    if (std::ssize(named) != kept || !inside || !ends) return "token " + std::to_string(token);
  }
  return "";
}

std::string damage_of_steps(const std::string& platform, std::shared_ptr<const TopKPolicy> policy) {
  PrefillServing serving({platform, small_geometry(6, 3, 160), {.top_k = std::move(policy)}});
  serving.admit(1, 90);
  serving.admit(2, 140);
  serving.admit(3, 70);
  const std::vector<Batch> steps{{{1, 4}, {2, 1}, {3, 2}}, {prefill(4, 2), prefill(5, 3)}};
  for (const Batch& batch : steps) {
    serving.step(batch);
    const std::string damage = top_k_damage(serving);
    if (!damage.empty()) {
      return "step " + std::to_string(serving.engine().counters().steps) + " " + damage;
    }
  }
  return "";
}

TEST_P(PrefillRows, TheTopKBufferIsOutOfBoundsUnderEachFault) {
  EXPECT_EQ(damage_of_steps(GetParam(), std::make_shared<TopKPolicy>()), "");
  EXPECT_EQ(damage_of_steps(GetParam(), std::make_shared<cases::TopKKept>()), "step 2 token 0");
  EXPECT_EQ(damage_of_steps(GetParam(), std::make_shared<cases::TopKZeroed>()), "step 2 token 0");
  EXPECT_NE(damage_of_steps(GetParam(), std::make_shared<cases::TopKCutAtDecodeTokens>()), "");
}

INSTANTIATE_TEST_SUITE_P(Platforms, PrefillRows,
                         testing::Values("sim-sm90", "sim-gfx942", "sim-gfx950"),
                         [](const auto& platform) {
                           std::string name = platform.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace prefill_rows_test

}  // namespace plumb::tests
