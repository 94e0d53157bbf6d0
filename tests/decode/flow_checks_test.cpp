// SPDX-License-Identifier: Apache-2.0
//
// Tests the checks of whose memory a call uses, on calls and fills that no engine has made.
#include "decode/checks/flow_checks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "decode/checks/cache_checks.h"

namespace plumb::tests {
namespace flow_checks_test {

using cases::CallRecorder;
using device::decode::CacheView;

class MemoryOfCalls : public testing::Test {
 protected:
  MemoryOfCalls() : watched_(setup()) {}

  static cases::DecodeSetup setup() {
    cases::DecodeSetup setup;
    setup.geometry.drafter = true;
    return setup;
  }
  const std::byte* memory(const std::string& label) const {
    const auto& blocks = watched_.engine.memory().blocks();
    const auto found =
        std::ranges::find(blocks, label, &device::decode::EngineMemory::NamedBlock::label);
    EXPECT_NE(found, blocks.end()) << label;
    return found == blocks.end() ? nullptr : found->address;
  }
  static CallRecorder::TensorCopy copy(std::string tensor, const std::byte* from, bool before) {
    return {.tensor = std::move(tensor), .from = from, .bytes = 64, .before = before};
  }
  // A step in which one engine has all parts.
  static cases::WatchedStep step_of(cases::WatchedEngine& one) {
    return {one, one, one, one, device::decode::GraphMode::full, cases::Findings(0)};
  }
  static std::string first_of(const cases::WatchedStep& step) {
    return step.findings.all().empty() ? "" : step.findings.all().front().text;
  }
  // The first finding about a call of layer 0 or of the drafter's.
  std::string found(std::vector<CallRecorder::TensorCopy> copies, bool draft = false) {
    cases::WatchedStep step = step_of(watched_);
    CallRecorder::CallRecording call;
    call.op = "rms_norm";
    call.place = device::decode::layer_place(0, "norm");
    call.place.draft = draft;
    call.copies = std::move(copies);
    cases::check_flow(call, step);
    return first_of(step);
  }

  cases::WatchedEngine watched_;
};

TEST_F(MemoryOfCalls, IsOfTheirOwnLayer) {
  EXPECT_EQ(found({copy("weight", memory("layer 0 q_norm"), true)}), "");
  EXPECT_EQ(found({copy("weight", memory("layer 1 q_norm"), true)}),
            "weight is layer 1 q_norm, which belongs to another layer");
  EXPECT_EQ(found({copy("cache", memory("layer 2 window cache") + 64, false)}),
            "cache is layer 2 window cache, which belongs to another layer");
  EXPECT_EQ(found({copy("cos_sin", memory("cos_sin"), true)}), "") << "all layers share it";
}

TEST_F(MemoryOfCalls, OfTheDrafterIsNotTheTargets) {
  EXPECT_EQ(found({copy("weight", memory("draft layer 0 q_norm"), true)}, true), "");
  EXPECT_EQ(found({copy("weight", memory("draft layer 0 q_norm"), true)}),
            "weight is draft layer 0 q_norm, which belongs to another layer");
  EXPECT_EQ(found({copy("weight", memory("layer 0 q_norm"), true)}, true),
            "weight is layer 0 q_norm, which belongs to another layer");
}

TEST_F(MemoryOfCalls, OutputsLieBesideInputs) {
  const std::byte* const at = memory("cos_sin");
  EXPECT_EQ(found({copy("x", at, true), copy("out", at + 64, false)}), "");
  EXPECT_EQ(found({copy("x", at, true), copy("out", at + 63, false)}),
            "out is written over x, which the call reads");
  EXPECT_EQ(found({copy("x_before", at, true), copy("x", at, false)}), "") << "in place";
}

// Two calls write so many rows each, and a call reads two rows of both: from row 0 on of the one
// and from row 1 on of the other.
class FirstRows : public MemoryOfCalls {
 protected:
  static constexpr std::int64_t kColumns = 4, kRowBytes = kColumns * 4;

  FirstRows() {
    for (const std::uint64_t id : {1, 2, 3}) watched_.engine.admit(id, 8);
    watched_.engine.step_eagerly({{1, 1}, {2, 1}, {3, 1}}, {});
  }
  static void add(CallRecorder::CallRecording& call, const std::string& tensor,
                  const std::byte* from, std::int64_t rows, bool before) {
    call.tensors.add(cases::TensorSpec{tensor, cases::Dtype::f32, {rows, kColumns}});
    call.copies.push_back({.tensor = tensor,
                           .from = from,
                           .bytes = static_cast<std::size_t>(rows * kRowBytes),
                           .before = before});
  }
  std::string found_of(std::int64_t rows) {
    cases::WatchedStep step = step_of(watched_);
    const std::byte* const one = memory("cos_sin");
    const std::byte* const other = one + rows * kRowBytes;
    CallRecorder::CallRecording writes, reads;
    add(writes, "one", one, rows, false);
    add(writes, "other", other, rows, false);
    step.writers.note(writes, 0);
    add(reads, "q", one, 2, true);
    add(reads, "weights", other + kRowBytes, 2, true);
    cases::check_flow(reads, step);
    return first_of(step);
  }
};

TEST_F(FirstRows, AreOfOneToken) {
  EXPECT_EQ(found_of(9),
            "q begins with row 0 of 9, but weights with row 1: these are different tokens");
}

// Three requests: the one may have a row per token of the prompts, the other one per request.
TEST_F(FirstRows, OfAsManyAsRequestsMayBeOfBoth) { EXPECT_EQ(found_of(3), ""); }

// A call that reads streams which the call at position 0 or 1 has written.
class Streams : public MemoryOfCalls {
 protected:
  std::string found_by(const std::string& op, std::size_t writer, const std::string& second_op) {
    cases::WatchedStep step = step_of(watched_);
    for (std::size_t i = 0; i < 2; ++i) {
      CallRecorder::CallRecording writes;
      writes.op = i == 0 ? "mhc_post" : second_op;
      writes.place = device::decode::layer_place(0, i == 0 ? "first mix" : "second mix");
      writes.tensors.add(cases::TensorSpec{"out", cases::Dtype::f32, {4, 4}});
      writes.copies = {copy("out", at(i), false)};
      step.writers.note(writes, static_cast<std::int64_t>(i));
    }
    CallRecorder::CallRecording reads;
    reads.op = op;
    reads.place = device::decode::layer_place(1, "reader");
    reads.tensors.add(cases::TensorSpec{"x", cases::Dtype::f32, {4, 4}});
    reads.copies = {copy("x", at(writer), true)};
    cases::check_flow(reads, step);
    return first_of(step);
  }
  const std::byte* at(std::size_t writer) const { return memory("cos_sin") + writer * 64; }
};

TEST_F(Streams, AreReadWhereTheyAreNewest) {
  const std::string older =
      "x is the output of layer 0 first mix, but layer 0 second mix has written a newer one";
  EXPECT_EQ(found_by("mhc_pre", 1, "mhc_fused_post_pre"), "");
  EXPECT_EQ(found_by("mhc_pre", 0, "mhc_fused_post_pre"), older);
  EXPECT_EQ(found_by("mtp_input_rms_norm", 0, "mhc_post"), older);
  EXPECT_EQ(found_by("mhc_pre", 0, "rms_norm"), "") << "which writes no streams";
}

class Dialects : public MemoryOfCalls {
 protected:
  // The first finding about a compressor, which writes e4m3fn, and a call that reads the same cache
  // in `dialect`.
  std::string found_by(const std::string& dialect) {
    const std::byte* const cache = memory("layer 0 window cache");
    cases::WatchedStep step = step_of(watched_);
    CallRecorder::CallRecording writes, reads;
    writes.place = device::decode::layer_place(0, "cache write");
    writes.op = "compress_norm_rope_insert";
    writes.copies = {copy("cache", cache, false)};
    reads.place = device::decode::layer_place(0, "attention");
    reads.row.words["extra_dialect"] = dialect;
    reads.copies = {copy("extra_cache", cache, true)};
    cases::check_flow(writes, step);
    cases::check_flow(reads, step);
    return first_of(step);
  }
};

TEST_F(Dialects, OfACacheAreThoseOfItsWriter) {
  EXPECT_EQ(found_by("e4m3fn"), "");
  EXPECT_EQ(found_by("e4m3fnuz"),
            "extra_cache is layer 0 window cache with codes of e4m3fnuz, but layer 0 cache write "
            "takes them for e4m3fn");
}

// Two requests of two tokens each.
class RowsOfRequests : public MemoryOfCalls {
 protected:
  static cases::DecodeSetup setup() {
    cases::DecodeSetup setup;
    setup.geometry.speculated = 3;
    return setup;
  }
  std::string found_for(std::int64_t requests, std::int64_t next_n) {
    cases::WatchedEngine watched(setup());
    for (const std::uint64_t id : {1, 2}) watched.engine.admit(id, 8);
    watched.engine.step_eagerly({{1, 2}, {2, 2}}, {});
    cases::WatchedStep step = step_of(watched);
    CallRecorder::CallRecording call;
    call.row.integers = {{"requests", requests}, {"next_n", next_n}};
    cases::check_flow(call, step);
    return first_of(step);
  }
};

TEST_F(RowsOfRequests, AreThoseThatDecode) {
  EXPECT_EQ(found_for(2, 2), "");
  EXPECT_EQ(found_for(1, 4),
            "takes 4 rows of each of 1 requests, but 2 requests decode at most 2 tokens");
  EXPECT_EQ(found_for(4, 1),
            "takes 1 rows of each of 4 requests, but 2 requests decode at most 2 tokens");
}

// A fill may change the blocks of its plan and no other.
TEST(StrayedFill, IsABlockWithoutAnEntryOfAPlan) {
  const cases::WatchedEngine watched(cases::DecodeSetup{});
  const cases::Snapshot before = cases::snapshot(watched);
  const CacheView window = watched.engine.caches().front();
  cases::Snapshot after = before;
  const std::int64_t slot = 3 * window.page + 1;
  auto& bytes = after.at(cases::index_of_block(watched, window.data));
  bytes.at(static_cast<std::size_t>(3 * window.block_bytes)) ^= std::byte{1};
  device::decode::StepPlan plan;
  plan.live_tokens = 1;
  plan.positions = {0};
  plan.query_start_loc = {0, 1};
  for (auto& slots : plan.slot_mapping) slots = {-1};
  EXPECT_EQ(cases::strayed_fill(watched, before, before, {plan}), std::nullopt);
  EXPECT_EQ(cases::strayed_fill(watched, before, after, {plan}).value_or(""),
            "block 3 of " + window.name +
                " changed, although no new request has its entries filled there");
  plan.slot_mapping[static_cast<std::size_t>(window.cache)] = {slot};
  EXPECT_EQ(cases::strayed_fill(watched, before, after, {plan}), std::nullopt);
}

}  // namespace flow_checks_test
}  // namespace plumb::tests
