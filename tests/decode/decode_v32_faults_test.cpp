// SPDX-License-Identifier: Apache-2.0
//
// Faults of V3.2's metadata (faults/decode/v32_policies.h), and the check that sees each.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "decode/metadata/v32_metadata.h"
#include "decode/watch/watch.h"
#include "faults/decode/v32_policies.h"
#include "tests/support/v32_serving.h"

namespace plumb::tests {

namespace decode_v32_faults_test {

using cases::BuffersNotInitialised;
using cases::CallRecorder;
using cases::ExtentsLostWithPadding;
using cases::forget_lengths;
using cases::forget_query_lens;
using cases::ForgettingKey;
using cases::IndptrOfLiveRows;
using cases::NeverTheSameKey;
using cases::sum_lengths;
using cases::UnknownExtents;
using device::decode::GraphMode;
using device::decode::KeyedStep;
using device::decode::StepPlan;
using device::decode::V32Policies;

V32Policies forgetting(std::function<void(KeyedStep&)> forget) {
  V32Policies policies;
  policies.plan_key = std::make_shared<ForgettingKey>(std::move(forget));
  return policies;
}

struct Schedule {
  std::vector<std::int64_t> lengths;  // contexts of requests 1, 2, ...
  std::vector<Ids> steps;
};

// Batches A, B, A, where B has the lengths of A in another order; then fewer and more requests.
Schedule swapped_lengths() {
  return {{5, 90, 127, 300, 90, 5}, {{1, 2}, {5, 6}, {1, 2}, {2, 3, 4}, {3}, {1, 2, 3, 4}}};
}

struct Serving : V32Serving {
  Serving(const V32Policies& policies, GraphMode mode, const Schedule& schedule)
      : V32Serving(
            "sim-gfx942", mode,
            device::decode::small_v32_geometry(static_cast<std::int64_t>(schedule.lengths.size())),
            policies) {
    std::uint64_t id = 0;
    for (const std::int64_t length : schedule.lengths) engine.admit(++id, length);
    engine.capture();
  }
};

// Whether a replay gives other bits than an eager engine without the fault.
bool changes_outputs(const V32Policies& policies, const Schedule& schedule = swapped_lengths()) {
  Serving right({}, GraphMode::full, schedule), graph(policies, GraphMode::full, schedule);
  bool changed = false;
  for (const Ids& ids : schedule.steps) {
    right.engine.step_eagerly(ids);
    graph.engine.step(ids);
    changed = changed || graph.out() != right.out();
  }
  return changed;
}

// First step with an op that is wrong on the bytes that it read, and that op; "" if there is none.
std::string first_wrong_op(const V32Policies& policies) {
  Serving serving(policies, GraphMode::none, swapped_lengths());
  CallRecorder recorder(*serving.device, serving.engine.geometry(), serving.ops,
                        serving.engine.temporaries());
  serving.engine.observe(&recorder);
  std::size_t step = 0;
  for (const Ids& ids : swapped_lengths().steps) {
    serving.engine.step_eagerly(ids);
    serving.device->synchronize();
    const std::string wrong = failures(recorder, "layers", serving.engine.plan().tokens);
    if (!wrong.empty()) return std::to_string(step) + " " + wrong.substr(0, wrong.find(':'));
    ++step;
  }
  return "";
}

TEST(DecodeV32KeyFaults, TheRightKeyIsSeenByNobody) {
  EXPECT_FALSE(changes_outputs({}));
  EXPECT_EQ(first_wrong_op({}), "");
}
TEST(DecodeV32KeyFaults, AKeyWithoutLengthsKeepsAPlanOfOtherLengths) {
  EXPECT_TRUE(changes_outputs(forgetting(forget_lengths)));
  EXPECT_EQ(first_wrong_op(forgetting(forget_lengths)), "1 layer 0 attention");
}
TEST(DecodeV32KeyFaults, AKeyInWhichEqualTotalsCollideDoesSoToo) {
  EXPECT_TRUE(changes_outputs(forgetting(sum_lengths)));
  EXPECT_EQ(first_wrong_op(forgetting(sum_lengths)), "1 layer 0 attention");
}

// Results are right; only the counters show the fault.
TEST(DecodeV32KeyFaults, ACacheThatNeverHitsShowsInTheCounters) {
  V32Policies policies;
  policies.plan_key = std::make_shared<NeverTheSameKey>();
  V32Serving serving("sim-gfx942", GraphMode::none, device::decode::small_v32_geometry(4),
                     policies);
  serving.engine.admit(1, 200);
  for (int step = 0; step < 5; ++step) serving.engine.step(Ids{1});
  EXPECT_EQ(serving.engine.counters().plans_made, 5);
  EXPECT_EQ(serving.engine.counters().plans_kept, 0);
}

// Builds plans for batches made by hand, which test the key fields that uniform decode batches do
// not.
class Builder {
 public:
  explicit Builder(const V32Policies& policies)
      : device_(device::open_device("sim-gfx942")),
        stream_(device_->create_stream()),
        ops_(device::builtin_implementation("sim-gfx942")),
        call_(ops_, ops_, missing_, stream_),
        memory_(*device_),
        inputs_(geometry_, memory_),
        metadata_(geometry_, *device_, stream_, memory_, policies) {}
  ~Builder() { device_->destroy_stream(stream_); }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // Tiles and splits after a step of these requests.
  std::vector<std::int32_t> plan_of(const std::vector<std::int32_t>& query_lens,
                                    const std::vector<std::int32_t>& seq_lens,
                                    std::int64_t padding = 0) {
    StepPlan plan;
    plan.query_start_loc = {0};
    for (const std::int32_t queries : query_lens) {
      plan.query_start_loc.push_back(plan.query_start_loc.back() + queries);
    }
    plan.seq_lens = seq_lens;
    plan.tokens = plan.query_start_loc.back() + padding;
    plan.attended = plan.tokens;
    plan.requests = static_cast<std::int64_t>(seq_lens.size());
    for (const auto& transfer : transfers(plan, inputs_, {})) {
      device_->copy(transfer.to, transfer.from, transfer.bytes, stream_);
    }
    metadata_.build(call_, inputs_, plan);
    const plumb_mla_plan& made = metadata_.attention().plan;
    std::vector<std::int32_t> words(static_cast<std::size_t>(8 * made.num_parts));
    std::vector<std::int32_t> splits(static_cast<std::size_t>(plan.tokens) + 1);
    device_->copy(words.data(), made.tiles, words.size() * 4, stream_);
    device_->copy(splits.data(), made.num_splits, splits.size() * 4, stream_);
    words.insert(words.end(), splits.begin(), splits.end());
    return words;
  }
  std::int64_t hits() const { return metadata_.counts().kept; }

 private:
  std::unique_ptr<device::Device> device_;
  device::Stream stream_;
  const device::Implementation& ops_;
  device::decode::MissingOpPolicy missing_;
  device::decode::Caller call_;
  device::decode::EngineMemory memory_;
  device::decode::Geometry geometry_ = device::decode::small_v32_geometry(64);
  device::decode::StepInputs inputs_;
  device::decode::V32Metadata metadata_;
};

struct Batch {
  std::vector<std::int32_t> query_lens, seq_lens;
  std::int64_t padding = 0;
};

// Whether the second batch gets another plan than from a builder that has not seen the first.
bool is_stale(const V32Policies& policies, const Batch& first, const Batch& second) {
  Builder old(policies), fresh(policies);
  old.plan_of(first.query_lens, first.seq_lens, first.padding);
  return old.plan_of(second.query_lens, second.seq_lens, second.padding) !=
         fresh.plan_of(second.query_lens, second.seq_lens, second.padding);
}

// As is_stale for a key without a field, where the right key must not be stale.
bool is_seen(const std::function<void(KeyedStep&)>& forget, const Batch& first,
             const Batch& second) {
  EXPECT_FALSE(is_stale({}, first, second));
  return is_stale(forgetting(forget), first, second);
}

TEST(DecodeV32KeyFaults, AKeyWithoutTokensTakesAPlanOfFewerRows) {
  const Batch bare{{1, 1, 1}, {40, 50, 60}}, padded{{1, 1, 1}, {40, 50, 60}, 1};
  EXPECT_TRUE(is_seen([](KeyedStep& step) { step.tokens = 0; }, bare, padded));
}
// AITER's key has no query lengths, except the longest.
TEST(DecodeV32KeyFaults, AKeyWithoutQueryLengthsNeedsTheLongest) {
  const Batch even{{2, 2}, {65, 20}}, uneven{{1, 3}, {65, 20}};
  EXPECT_FALSE(is_stale(forgetting(forget_query_lens), even, uneven));
  EXPECT_TRUE(is_seen(
      [](KeyedStep& step) {
        forget_query_lens(step);
        step.max_query_len = 0;
      },
      even, uneven));
}
TEST(DecodeV32KeyFaults, AKeyWithoutQueryLengthsCollidesWhereTheLongestIsTheSame) {
  const Batch first{{1, 3}, {65, 66}}, second{{3, 1}, {65, 66}};
  EXPECT_TRUE(is_seen(forget_query_lens, first, second));
}
// AITER cuts the length of a request to the top-k, although the first tokens of a chunk attend
// fewer.
TEST(DecodeV32KeyFaults, LengthsCutToTheTopKCollideInAChunk) {
  const Batch first{{40}, {130}}, second{{40}, {200}};
  EXPECT_TRUE(is_seen(
      [](KeyedStep& step) {
        for (std::int32_t& length : step.lengths) length = std::min(length, 128);
      },
      first, second));
}
TEST(DecodeV32KeyFaults, TheRightKeyStillHitsWhereNoTokenSeesMore) {
  Builder builder({});
  builder.plan_of({40}, {167});
  builder.plan_of({40}, {200});
  EXPECT_EQ(builder.hits(), 1);
}

// ---- persistent buffers ----

template <class Policy>
V32Policies with_buffers() {
  V32Policies policies;
  policies.buffers = std::make_shared<Policy>();
  return policies;
}

// The second step pads 5 live tokens to 8.
Schedule shrinking() {
  return {{20, 40, 60, 80, 100, 120, 140, 160}, {{1, 2, 3, 4}, {4, 5, 6, 7, 8}, {1, 2}, {1}}};
}

// First step after which a buffer is wrong, and that buffer; "" if there is none.
std::string first_wrong_buffer(const V32Policies& policies) {
  Serving graph(policies, GraphMode::full, shrinking());
  std::size_t step = 0;
  for (const Ids& ids : shrinking().steps) {
    graph.engine.step(ids);
    graph.device->synchronize();
    const std::string wrong = wrong_buffers(graph);
    if (!wrong.empty()) return std::to_string(step) + " " + wrong.substr(0, wrong.find('\n'));
    ++step;
  }
  return "";
}

TEST(DecodeV32BufferFaults, RightBuffersAreSeenByNobody) { EXPECT_EQ(first_wrong_buffer({}), ""); }
TEST(DecodeV32BufferFaults, ATailThatIsNotClearedHoldsIdsOfTheStepBefore) {
  EXPECT_EQ(first_wrong_buffer(with_buffers<UnknownExtents>()),
            "2 paged metadata: req_id_per_token");
}
TEST(DecodeV32BufferFaults, AnExtentLostOnOnePathLeavesWhatThatPathWrote) {
  EXPECT_EQ(first_wrong_buffer(with_buffers<ExtentsLostWithPadding>()),
            "2 paged metadata: req_id_per_token");
}
TEST(DecodeV32BufferFaults, BuffersNotZeroedAtTheStartHoldAnything) {
  EXPECT_EQ(first_wrong_buffer(with_buffers<BuffersNotInitialised>()),
            "0 paged metadata: req_id_per_token");
}

// Rows of padding keep the ranges of the short step before, which now overlap live ranges.
TEST(DecodeV32BufferFaults, AnIndptrThatEndsWithTheLiveRowsChangesOutputs) {
  EXPECT_EQ(first_wrong_buffer(with_buffers<IndptrOfLiveRows>()),
            "0 paged metadata: paged_kv_indptr");
  const Schedule short_then_long{{5, 5, 5, 5, 5, 5, 5, 5, 200, 200, 200, 200, 200},
                                 {{1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 11, 12, 13}}};
  EXPECT_FALSE(changes_outputs({}, short_then_long));
  EXPECT_TRUE(changes_outputs(with_buffers<IndptrOfLiveRows>(), short_then_long));
}

// ---- the detectors of a step under watch ----

cases::WatchResult watched(const V32Policies& policies, cases::Traffic traffic,
                           cases::Lengths lengths, GraphMode mode = GraphMode::full) {
  cases::DecodeSetup setup;
  setup.platform = "sim-gfx942";
  setup.geometry = device::decode::small_v32_geometry(8);
  setup.geometry.max_batched_tokens = 48;  // more tokens per fill, so fewer fills
  setup.mode = mode;
  setup.policies = V32Serving::with(policies);
  return cases::watch(setup, {traffic, lengths, 4, 5, 1});
}

TEST(DecodeV32Watch, RightStepsRaiseNoAlarm) {
  using cases::Lengths, cases::Traffic;
  constexpr GraphMode kModes[] = {GraphMode::full, GraphMode::piecewise, GraphMode::breakable,
                                  GraphMode::full_and_piecewise};
  for (int lengths = 0; lengths < 6; ++lengths) {
    const GraphMode mode = kModes[lengths % 4];
    const auto result =
        watched({}, static_cast<Traffic>(lengths), static_cast<Lengths>(lengths), mode);
    EXPECT_TRUE(result.clean()) << lengths << " " << result.findings.front().text;
    EXPECT_EQ(result.steps, 4);
  }
}
// Ranges that layers cannot use are reported as such, and do not cause errors in later ops.
TEST(DecodeV32Watch, NonsenseInAnIndptrIsJudgedAsSuch) {
  const auto result = watched(with_buffers<IndptrOfLiveRows>(), cases::Traffic::there_and_back,
                              cases::Lengths::mixed);
  EXPECT_FALSE(result.found_by(cases::Detector::error));
  const auto of_attention =
      std::find_if(result.findings.begin(), result.findings.end(),
                   [](const cases::Finding& finding) { return finding.op == "sparse_mla_decode"; });
  ASSERT_NE(of_attention, result.findings.end());
  EXPECT_EQ(of_attention->text,
            "main_indptr: not a range of at most 128 entries of 1024 in 1 of 8 rows (row 5); row 5 "
            "has [390, 0)");
}

}  // namespace decode_v32_faults_test

}  // namespace plumb::tests
