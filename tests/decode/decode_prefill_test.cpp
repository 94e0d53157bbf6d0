// SPDX-License-Identifier: Apache-2.0
//
// Prefill and mixed batches on simulated platforms: every op is right on the bytes that it read,
// and a batch that does not fit is refused.
#include <gtest/gtest.h>

#include "decode/checks/candidates.h"
#include "tests/support/prefill_serving.h"

namespace plumb::tests {

namespace decode_prefill_test {

// A line about a decode token whose attention reads a slot that its request does not own; "": none.
std::string wrong_decode_candidates(PrefillServing& serving, const Calls& calls) {
  for (const CallRecorder::CallRecording* call : calls) {
    if (call->op != "sparse_mla_decode") continue;
    const Engine& engine = serving.engine();
    if (const auto line = cases::wrong_candidates(*call, engine.plan(), engine.geometry())) {
      return call->place.name + ": " + *line;
    }
  }
  return "";
}

class DecodePrefill : public testing::TestWithParam<std::string> {
 protected:
  // Runs the steps on one engine and judges each.
  void expect_right(PrefillServing& serving, const std::vector<Batch>& steps) {
    serving.observe();
    for (const Batch& batch : steps) {
      serving.step(batch);
      const Calls calls = serving.calls();
      EXPECT_EQ(failures(calls), "") << "step " << serving.engine().counters().steps;
      EXPECT_EQ(candidates_of_nobody(calls), 0);
      EXPECT_EQ(wrong_decode_candidates(serving, calls), "");
      const std::int64_t chunks = std::ssize(serving.engine().plan().prefill.chunks);
      EXPECT_EQ(count_of(calls, "sparse_mla_prefill"), 3 * chunks);
      EXPECT_EQ(count_of(calls, "dequantize_and_gather_k_cache"), 5 * chunks);
    }
    EXPECT_TRUE(serving.device().check_guards().empty());
  }
};

// One token; a whole prompt with more states than the top-k keeps; a prompt in three chunks.
TEST_P(DecodePrefill, EveryOpOfOnePromptIsRight) {
  PrefillServing serving({GetParam()});
  expect_right(serving, {{prefill(1, 1)},
                         {prefill(2, 140)},
                         {prefill(3, 30)},
                         {prefill(3, 1)},
                         {prefill(3, 98)},
                         {prefill(1, 2)}});
}

// Lengths around a compressed state (4 tokens), pages (8 tokens, 4 states), the window (16), the
// top-k (16 states) and a long state (128); a chunk without a state; a chunk after four requests.
TEST_P(DecodePrefill, EveryOpOfSeveralPromptsIsRight) {
  PrefillServing serving({GetParam()});
  expect_right(serving,
               {{prefill(1, 3), prefill(2, 2), prefill(3, 1)},
                {prefill(1, 1), prefill(2, 13), prefill(3, 15), prefill(4, 17)},
                {prefill(4, 46), prefill(2, 1), prefill(1, 60), prefill(3, 1), prefill(5, 7)},
                {prefill(4, 1), prefill(5, 56), prefill(1, 1)},
                {prefill(4, 64), prefill(1, 63)}});
}

TEST_P(DecodePrefill, EveryOpOfAMixedBatchIsRight) {
  PrefillServing serving({GetParam()});
  serving.admit(1, 5);
  serving.admit(2, 90);
  serving.admit(3, 300);
  expect_right(serving, {{{1}, {2}, {3}, prefill(4, 20)},
                         {{3}, prefill(4, 1), prefill(5, 128)},
                         {{4}, {5}, {1}, prefill(6, 4), prefill(7, 5), prefill(8, 65)},
                         {{2}, {6}}});
}

// With speculation, some requests have fewer tokens than the maximum. Such batches are packed, here
// without and with prefills after them.
TEST_P(DecodePrefill, EveryOpOfAPackedBatchIsRight) {
  PrefillServing serving({GetParam(), small_geometry(6, 3, 160)});
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
    PrefillServing serving({GetParam(), small_geometry(6, 1, 160), {}, one});
    serving.admit(1, 90);
    expect_right(serving, {{{1, 2}, prefill(2, 17)}, {{1, 1}, {2, 2}, prefill(3, 1)}});
  }
}

TEST_P(DecodePrefill, ABatchThatDoesNotFitIsRefused) {
  PrefillServing serving({GetParam(), small_geometry(4, 1, 160)});
  for (std::uint64_t id = 1; id <= 5; ++id) serving.admit(id, 0);
  const Batch bad[] = {{prefill(1, 2), {2, 2}},
                       {{1, 3}},
                       {prefill(1, 0)},
                       {prefill(1, 161)},
                       {prefill(1, 1), prefill(2, 1), prefill(3, 1), prefill(4, 1), prefill(5, 1)}};
  for (const Batch& batch : bad) {
    EXPECT_THROW(serving.engine().step(batch), std::invalid_argument);
  }
  PrefillServing decoding({GetParam(), small_geometry(4)});
  decoding.admit(1, 0);
  EXPECT_THROW(decoding.engine().step(Batch{prefill(1, 1)}), std::invalid_argument);
  serving.admit(6, 383);
  EXPECT_THROW(serving.engine().step(Batch{prefill(6, 2)}), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Platforms, DecodePrefill,
                         testing::Values("sim-sm90", "sim-gfx942", "sim-gfx950"),
                         [](const auto& platform) {
                           std::string name = platform.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace decode_prefill_test

}  // namespace plumb::tests
