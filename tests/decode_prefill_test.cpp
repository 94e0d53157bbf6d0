// SPDX-License-Identifier: Apache-2.0
//
// Prefill and mixed batches in the step of device/decode on simulated platforms: every op is right
// on the bytes that it was given, rows that decode do not depend on who prefills beside them, a
// prompt in chunks leaves the caches that a whole one does, and what the top-k buffer holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "cases/decode/taps.h"
#include "device/decode/engine.h"

namespace plumb::cases {

namespace {

using device::decode::Engine;
using device::decode::Geometry;
using device::decode::GraphMode;
using device::decode::Padding;
using device::decode::Policies;
using device::decode::Scheduled;
using device::decode::small_geometry;
using device::decode::TopKPolicy;
using Batch = std::vector<Scheduled>;
using Rows = std::vector<std::uint16_t>;

Scheduled prefill(std::uint64_t request, std::int64_t tokens) { return {request, tokens, true}; }

struct Setting {
  std::string platform;
  Geometry geometry = small_geometry(8);
  Policies policies = {};
  device::Conditions conditions = {};
};

// An engine on a device of its own, which has each of the requests of a step, from its first token
// on where nobody admitted it.
class Serving {
 public:
  explicit Serving(const Setting& setting)
      : device_(device::open_device(setting.platform, setting.conditions)),
        ops_(setting.conditions.checked ? device::checked_implementation(setting.platform)
                                        : device::builtin_implementation(setting.platform)),
        engine_(*device_, ops_, setting.geometry, GraphMode::none, setting.policies),
        taps_(*device_, engine_.geometry(), ops_) {}

  void admit(std::uint64_t request, std::int64_t tokens) {
    engine_.admit(request, tokens);
    admitted_.insert(request);
  }
  void observe() { engine_.observe(&taps_); }

  void step(const Batch& batch) {
    admit_new(batch);
    engine_.step(batch);
    device_->synchronize();
  }
  void step_padded(const Batch& batch, const Padding& padding) {
    admit_new(batch);
    engine_.step_eagerly(batch, padding);
    device_->synchronize();
  }

  // The calls of the latest step.
  std::vector<const Taps::Tap*> calls() {
    std::vector<const Taps::Tap*> all;
    for (const char* part : {"metadata", "layers"}) {
      for (const auto& call : fetch(part)) all.push_back(call.get());
    }
    return all;
  }
  Rows out() {
    const std::int64_t tokens = engine_.plan().live_tokens;
    return read<std::uint16_t>(engine_.out(), tokens * engine_.geometry().hidden);
  }
  // Of the block of the engine's memory that has this label.
  template <class T>
  std::vector<T> block(const std::string& label) {
    for (const auto& block : engine_.memory().blocks()) {
      if (block.label != label) continue;
      return read<T>(block.address, static_cast<std::int64_t>(block.bytes / sizeof(T)));
    }
    throw std::out_of_range(label);
  }
  std::vector<std::string> caches() const {
    std::vector<std::string> labels;
    for (const auto& block : engine_.memory().blocks()) {
      if (block.label.ends_with(" cache")) labels.push_back(block.label);
    }
    return labels;
  }
  Engine& engine() { return engine_; }
  device::Device& device() { return *device_; }

 private:
  void admit_new(const Batch& batch) {
    for (const Scheduled& one : batch) {
      if (!admitted_.contains(one.request)) admit(one.request, 0);
    }
  }
  const Taps::Calls& fetch(const std::string& part) {
    const auto& plan = engine_.plan();
    return plan.uniform ? taps_.fetch(part, plan.tokens) : taps_.fetch_varying(part);
  }
  template <class T>
  std::vector<T> read(const void* from, std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    device_->copy(values.data(), from, values.size() * sizeof(T), engine_.stream());
    return values;
  }

  std::unique_ptr<device::Device> device_;
  const plumb_implementation& ops_;
  Engine engine_;
  Taps taps_;
  std::set<std::uint64_t> admitted_;
};

using Calls = std::vector<const Taps::Tap*>;

std::string failures(const Calls& calls) {
  std::string text;
  for (const Taps::Tap* call : calls) {
    for (const TensorReport& report : call->judge()) {
      for (const std::string& line : report.failures) text += call->name + ": " + line + "\n";
    }
  }
  return text;
}

std::int64_t count_of(const Calls& calls, std::string_view op) {
  return std::count_if(calls.begin(), calls.end(),
                       [&](const Taps::Tap* call) { return call->op == op; });
}

// Entries of ragged lists of prefills that name no row of the workspace: in a step, each list is
// full.
std::int64_t candidates_of_nobody(const Calls& calls) {
  std::int64_t count = 0;
  for (const Taps::Tap* call : calls) {
    if (call->op != "sparse_mla_prefill") continue;
    const auto* indices = call->tensors.at("kv_indices").data<std::int32_t>();
    const HostTensor& indptr = call->tensors.at("kv_indptr");
    const std::int64_t end = indptr.data<std::int32_t>()[indptr.elements() - 1];
    const std::int64_t rows = call->tensors.at("kv").rows();
    count += std::count_if(indices, indices + end,
                           [&](std::int32_t index) { return index < 0 || index >= rows; });
  }
  return count;
}

class DecodePrefill : public testing::TestWithParam<std::string> {
 protected:
  // Runs the steps on one engine and judges each.
  void expect_right(Serving& serving, const std::vector<Batch>& steps) {
    serving.observe();
    for (const Batch& batch : steps) {
      serving.step(batch);
      const Calls calls = serving.calls();
      EXPECT_EQ(failures(calls), "") << "step " << serving.engine().counters().steps;
      EXPECT_EQ(candidates_of_nobody(calls), 0);
      const std::int64_t chunks = std::ssize(serving.engine().plan().prefill.chunks);
      EXPECT_EQ(count_of(calls, "sparse_mla_prefill"), 3 * chunks);
      EXPECT_EQ(count_of(calls, "dequantize_and_gather_k_cache"), 5 * chunks);
    }
    EXPECT_TRUE(serving.device().check_guards().empty());
  }
};

// One token, a whole prompt with more states than the top-k keeps, a prompt in three chunks.
TEST_P(DecodePrefill, EveryOpOfOnePromptIsRight) {
  Serving serving({GetParam()});
  expect_right(serving, {{prefill(1, 1)},
                         {prefill(2, 140)},
                         {prefill(3, 30)},
                         {prefill(3, 1)},
                         {prefill(3, 98)},
                         {prefill(1, 2)}});
}

// Lengths around the ratio of a state (4), pages (8 tokens, 4 states), the window (16), the top-k
// (16 states) and a long state (128); a chunk without a state, and one behind four requests.
TEST_P(DecodePrefill, EveryOpOfSeveralPromptsIsRight) {
  Serving serving({GetParam()});
  expect_right(serving,
               {{prefill(1, 3), prefill(2, 2), prefill(3, 1)},
                {prefill(1, 1), prefill(2, 13), prefill(3, 15), prefill(4, 17)},
                {prefill(4, 46), prefill(2, 1), prefill(1, 60), prefill(3, 1), prefill(5, 7)},
                {prefill(4, 1), prefill(5, 56), prefill(1, 1)},
                {prefill(4, 64), prefill(1, 63)}});
}

TEST_P(DecodePrefill, EveryOpOfAMixedBatchIsRight) {
  Serving serving({GetParam()});
  serving.admit(1, 5);
  serving.admit(2, 90);
  serving.admit(3, 300);
  expect_right(serving, {{{1}, {2}, {3}, prefill(4, 20)},
                         {{3}, prefill(4, 1), prefill(5, 128)},
                         {{4}, {5}, {1}, prefill(6, 4), prefill(7, 5), prefill(8, 65)},
                         {{2}, {6}}});
}

// With speculation some requests have fewer tokens than they may: these batches are packed, alone
// and with prefills behind them.
TEST_P(DecodePrefill, EveryOpOfAPackedBatchIsRight) {
  Serving serving({GetParam(), small_geometry(6, 3)});
  serving.admit(1, 5);
  serving.admit(2, 90);
  serving.admit(3, 127);
  expect_right(serving, {{{1, 4}, {2, 1}, {3, 3}},
                         {{2, 2}, {3, 4}, prefill(4, 33)},
                         {{1, 2}, {4, 2}, prefill(5, 3)},
                         {{1, 4}, {2, 4}, {4, 4}}});
}

TEST_P(DecodePrefill, EveryOpIsRightUnderHostileConditions) {
  using device::Order;
  using device::Policy;
  const device::Conditions conditions[] = {
      {.order = Order::random, .seed = 7, .policy = Policy::late},
      {.order = Order::reverse, .seed = 8, .policy = Policy::interleaved, .page_guards = true},
      {.policy = Policy::late, .checked = true}};
  for (const device::Conditions& one : conditions) {
    Serving serving({GetParam(), small_geometry(6, 1), {}, one});
    serving.admit(1, 90);
    expect_right(serving, {{{1, 2}, prefill(2, 17)}, {{1, 1}, {2, 2}, prefill(3, 1)}});
  }
}

Batch decodes(std::int64_t requests) {
  Batch batch;
  for (std::int64_t i = 1; i <= requests; ++i) batch.push_back({static_cast<std::uint64_t>(i)});
  return batch;
}

// The rows of so many requests that decode, beside prefills or alone.
Rows decoded(const std::string& platform, std::int64_t requests, const Batch& beside) {
  Serving serving({platform, small_geometry(24)});
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

// One tile plan for those that decode, whoever stands behind them. Up to 16 tokens, and from 17 on,
// mHC does the same for every number of them.
TEST_P(DecodePrefill, RowsThatDecodeAreThoseOfAPureBatch) {
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

// Rows of two runs differ by what roundings make of each other: each is far nearer to its own than
// any two different rows are.
void expect_same_rows(const Rows& got, const Rows& wanted, std::int64_t rows) {
  constexpr double kFar = 256;  // squared: 16 times as far
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

// Across those 16 tokens mHC rounds otherwise.
TEST_P(DecodePrefill, RowsThatDecodeStayTheirOwnInALargerBatch) {
  expect_same_rows(decoded(GetParam(), 5, {prefill(31, 60)}), decoded(GetParam(), 5, {}), 5);
}

// The same tokens, prefilled by one engine behind a request that decodes, in two chunks, and
// decoded by another: other kernels over other copies of the same caches.
TEST_P(DecodePrefill, APrefillComputesWhatADecodeDoes) {
  const Geometry geometry = small_geometry(8, 1);
  Serving prefilling({GetParam(), geometry}), decoding({GetParam(), geometry});
  const std::int64_t tokens[] = {5, 90, 61, 30, 140, 300, 127};
  Batch prefills{{9, 1}}, decodes;
  for (Serving* serving : {&prefilling, &decoding}) serving->admit(9, 200);
  for (std::uint64_t id = 1; id <= 7; ++id) {
    for (Serving* serving : {&prefilling, &decoding}) serving->admit(id, tokens[id - 1]);
    prefills.push_back(prefill(id, 2));
    decodes.push_back({id, 2});
  }
  prefilling.step(prefills);
  decoding.step(decodes);
  Rows got = prefilling.out();
  got.erase(got.begin(), got.begin() + geometry.hidden);
  expect_same_rows(got, decoding.out(), 14);
}

// All chunks have more than 16 tokens, so that every op does with a row what it does in the whole
// prompt; the last chunk of the second pass has fewer.
TEST_P(DecodePrefill, APromptInChunksLeavesTheCachesOfAWholeOne) {
  Serving whole({GetParam()}), chunked({GetParam()}), uneven({GetParam()});
  whole.step({prefill(1, 141)});
  for (const std::int64_t tokens : {17, 64, 60}) chunked.step({prefill(1, tokens)});
  for (const std::int64_t tokens : {3, 137, 1}) uneven.step({prefill(1, tokens)});
  ASSERT_EQ(whole.caches().size(), 6u);
  for (const std::string& cache : whole.caches()) {
    const auto bytes = whole.block<std::uint8_t>(cache);
    EXPECT_EQ(chunked.block<std::uint8_t>(cache), bytes) << cache;
    // Tokens of the first layer, and all states, depend on nothing that mHC makes of several.
    if (cache != "layer 0 window cache" && cache.ends_with("window cache")) continue;
    EXPECT_EQ(uneven.block<std::uint8_t>(cache), bytes) << cache;
  }
}

// Tokens of nobody fill a mixed batch up to a captured size.
TEST_P(DecodePrefill, TokensOfNobodyReachNoOtherRow) {
  const Batch batch{{1}, {2}, prefill(3, 3)};
  Serving plain({GetParam()});
  plain.admit(1, 5);
  plain.admit(2, 90);
  plain.step(batch);
  for (const std::int64_t key : {0, 12345}) {
    Serving padded({GetParam()});
    padded.admit(1, 5);
    padded.admit(2, 90);
    padded.observe();
    padded.step_padded(batch, {.token_key = key});
    EXPECT_EQ(padded.engine().plan().tokens, 8);
    EXPECT_EQ(failures(padded.calls()), "");
    EXPECT_EQ(padded.out(), plain.out());
  }
}

TEST_P(DecodePrefill, ABatchThatDoesNotFitIsRefused) {
  Serving serving({GetParam(), small_geometry(4, 1)});
  for (std::uint64_t id = 1; id <= 5; ++id) serving.admit(id, 0);
  const Batch bad[] = {{prefill(1, 2), {2, 2}},
                       {{1, 3}},
                       {prefill(1, 0)},
                       {prefill(1, 161)},
                       {prefill(1, 1), prefill(2, 1), prefill(3, 1), prefill(4, 1), prefill(5, 1)}};
  for (const Batch& batch : bad) {
    EXPECT_THROW(serving.engine().step(batch), std::invalid_argument);
  }
  serving.admit(6, 383);
  EXPECT_THROW(serving.engine().step(Batch{prefill(6, 2)}), std::invalid_argument);
}

// What is wrong with the rows of the latest step's top-k buffer: each names different states that
// the token may attend, as many as there are or as are kept, and -1 behind them.
std::string top_k_damage(Serving& serving) {
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

struct Kept final : TopKPolicy {
  std::optional<std::uint8_t> reset() const override { return std::nullopt; }
};
struct Zeroed final : TopKPolicy {
  std::optional<std::uint8_t> reset() const override { return 0; }
};
// vLLM #42810
struct CutAtDecodeTokens final : TopKPolicy {
  std::int64_t ranked(std::int64_t, std::int64_t next_n,
                      std::int64_t num_decode_tokens) const override {
    return num_decode_tokens / next_n;
  }
};

std::string damage_of_steps(const std::string& platform, std::shared_ptr<const TopKPolicy> policy) {
  Serving serving({platform, small_geometry(6, 3), {.top_k = std::move(policy)}});
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

TEST_P(DecodePrefill, TheTopKBufferIsOutOfBoundsUnderEachFault) {
  EXPECT_EQ(damage_of_steps(GetParam(), std::make_shared<TopKPolicy>()), "");
  EXPECT_EQ(damage_of_steps(GetParam(), std::make_shared<Kept>()), "step 2 token 0");
  EXPECT_EQ(damage_of_steps(GetParam(), std::make_shared<Zeroed>()), "step 2 token 0");
  EXPECT_NE(damage_of_steps(GetParam(), std::make_shared<CutAtDecodeTokens>()), "");
}

INSTANTIATE_TEST_SUITE_P(Platforms, DecodePrefill,
                         testing::Values("sim-sm90", "sim-gfx942", "sim-gfx950"),
                         [](const auto& platform) {
                           std::string name = platform.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace

}  // namespace plumb::cases
