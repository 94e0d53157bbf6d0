// SPDX-License-Identifier: Apache-2.0
//
// The model of requests checks plans of a right host, each with one change, and names the changed
// part. The faults of plumb faults make such changes in a running step.
#include "decode/checks/requests/request_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plumb::cases {
namespace request_model_test {

using device::decode::Cache;
using device::decode::Geometry;
using device::decode::Padding;
using device::decode::Query;
using device::decode::Request;
using device::decode::RequestPolicy;
using device::decode::Requests;
using device::decode::Scheduled;
using device::decode::StepPlan;
using device::decode::WindowGaps;

constexpr std::size_t kC4a = static_cast<std::size_t>(Cache::c4a);
constexpr std::size_t kPartial = static_cast<std::size_t>(Cache::c4a_partial);

// Bookkeeping of requests as in an engine, and the model that checks it. No device is needed.
struct Host {
  explicit Host(bool frees_window = false) {
    geometry.frees_window = frees_window;
    requests.emplace(geometry, policy, 1);
    model.emplace(geometry);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  StepPlan fill(Request request, std::int64_t tokens) {
    return plan_step(geometry, {{&request, tokens, true}}, tokens, {}, {});
  }

  // Admits a request and fills its caches in chunks of at most the tokens of a step.
  std::optional<WrongPlan> come(std::uint64_t id, std::int64_t tokens, bool leaves = true) {
    Request& request = requests->admit(id);
    std::vector<CacheFill> fills;
    while (request.computed < tokens) {
      const std::int64_t chunk = std::min(tokens - request.computed, geometry.max_tokens());
      requests->reserve(request, request.computed + chunk);
      fills.push_back({id, fill(request, chunk)});
      request.count(chunk);
      if (leaves) requests->leave(request);
    }
    return model->change({.admitted = {{id, tokens}}}, fills);
  }

  // The plan that fills the gaps of a prefix hit.
  StepPlan fill(Request request, const WindowGaps& gaps) {
    request.computed = gaps.begin();
    StepPlan plan = fill(request, gaps.end() - gaps.begin());
    write_only(gaps, plan);
    return plan;
  }

  // Admits behind another request. Blocks of windows that were given back are filled again, unless
  // fills_gaps is false.
  std::optional<WrongPlan> come_behind(std::uint64_t id, std::uint64_t other, std::int64_t tokens,
                                       bool fills_gaps = true) {
    const WindowGaps gaps = requests->admit_behind(id, other, tokens);
    std::vector<CacheFill> fills;
    if (fills_gaps && gaps.end() > 0) fills.push_back({id, fill(requests->at(id), gaps)});
    return model->change({.shared = {{id, other, tokens}}}, fills);
  }

  StepPlan plan(const ScheduledStep& step, const Padding& padding = {}) {
    std::vector<Query> queries;
    for (const Scheduled& one : step.batch) {
      Request& request = requests->at(one.request);
      requests->reserve(request, request.computed + one.tokens);
      queries.push_back({&request, one.tokens, one.prefill});
    }
    return plan_step(geometry, queries, 16, padding, {});
  }

  std::optional<WrongPlan> step(const ScheduledStep& step) {
    const auto wrong = model->check(step, plan(step));
    for (const Scheduled& one : step.batch) {
      Request& request = requests->at(one.request);
      const std::int64_t accepted = one.accepted == Scheduled::kAll ? one.tokens : one.accepted;
      request.count(accepted);
      request.rejections += accepted < one.tokens;
      requests->leave(request);
    }
    return wrong;
  }

  Geometry geometry = device::decode::small_geometry(4, 3, 48);
  RequestPolicy policy;
  std::optional<Requests> requests;
  std::optional<RequestModel> model;
};

// Tokens 0 to 3 belong to request 1, from position 20; 4 and 5 to request 2, from 130; 6 to 12 to
// the prompt of request 3, from 5.
const ScheduledStep kMixed{.batch = {{1, 4, false, 3}, {2, 2}, {3, 7, true}}};

void admit_three(Host& host) {
  for (const auto& [id, tokens] :
       std::vector<std::pair<std::uint64_t, std::int64_t>>{{1, 20}, {2, 130}, {3, 5}}) {
    const auto wrong = host.come(id, tokens);
    EXPECT_FALSE(wrong) << wrong->text;
  }
}

std::string part_of(const std::optional<WrongPlan>& wrong) { return wrong ? wrong->part : ""; }

using Change = std::function<void(StepPlan&)>;
struct ChangedPlan {
  const char* part;
  const char* says;
  Change change;
};

// Adds `more` to entry `at` of an array of the plan.
template <class T>
Change add(std::vector<T> StepPlan::* array, std::size_t at, T more) {
  return [=](StepPlan& plan) { (plan.*array).at(at) += more; };
}

std::vector<ChangedPlan> changed_plans() {
  return {
      {"batch", "planned requests: 2, expected 3", [](StepPlan& p) { --p.live_requests; }},
      {"batch", "planned tokens: 14, expected 13", [](StepPlan& p) { ++p.live_tokens; }},
      {"batch", "planned as uniform", [](StepPlan& p) { p.uniform = true; }},
      {"batch", "requests that decode: 3", [](StepPlan& p) { ++p.num_decodes; }},
      {"batch", "tokens that decode: 7", [](StepPlan& p) { ++p.num_decode_tokens; }},
      {"batch", "not packed", [](StepPlan& p) { p.packed = false; }},
      {"batch", "most tokens that decode: 3", [](StepPlan& p) { --p.next_n; }},
      {"decode_lens", "request 2 in row 1 decodes tokens: 3", add(&StepPlan::decode_lens, 1, 1)},
      {"packed_state_lens", "request 2 in row 1", add(&StepPlan::packed_state_lens, 6, 1)},
      {"query_start_loc", "request 1 in row 0 ends before token 5",
       add(&StepPlan::query_start_loc, 1, 1)},
      {"positions", "position 21 of request 1 in row 0 is planned as 20",
       add(&StepPlan::positions, 1, std::int64_t{-1})},
      {"computed tokens", "request 1 in row 0 begins at position 21, expected 20",
       [](StepPlan& p) {
         for (std::size_t i = 0; i < 4; ++i) ++p.positions[i];
         ++p.seq_lens[0];
       }},
      {"token_keys", "gets token 131 of request 2, expected token 130 of request 2",
       add(&StepPlan::token_keys, 4, std::int64_t{1})},
      {"next_token_keys", "gets token 130 of request 2",
       add(&StepPlan::next_token_keys, 4, std::int64_t{-1})},
      {"state_lens", "scores entries: 33, expected 32", add(&StepPlan::state_lens, 4, 1)},
      {"seq_lens",
       "request 2 in row 1 has length 133, expected 132: the request has no more tokens",
       add(&StepPlan::seq_lens, 1, 1)},
      {"seq_lens", "has length 131", add(&StepPlan::seq_lens, 1, -1)},
      {"token_to_req", "position 130 of request 2 in row 1 belongs to row 2, expected 1",
       add(&StepPlan::token_to_req, 4, 1)},
      {"slot_mapping", "c4a partial state 22 of request 1 (row 0) is written to slot",
       [](StepPlan& p) { p.slot_mapping[kPartial][2] = p.slot_mapping[kPartial][3]; }},
      {"slot_mapping", "but the block table gives slot",
       [](StepPlan& p) { p.slot_mapping[kPartial][3] = -1; }},
      {"slot_mapping", "position 21 of request 1 (row 0) is written to slot",
       [](StepPlan& p) { ++p.slot_mapping[0][1]; }},
      {"block_tables", "the call reads slot 0, which holds nothing",
       [](StepPlan& p) { p.block_tables[0][1] = 0; }},
      {"block_tables", "which holds position",
       [](StepPlan& p) { std::swap(p.block_tables[0][1], p.block_tables[0][2]); }},
      {"block_tables", "c4a state 0 of request 1",
       [](StepPlan& p) { p.block_tables[kC4a][0] = p.block_tables[kC4a][1]; }},
      {"block_tables", "c4a partial state 16 of request 1 (row 0) lies in slot",
       [](StepPlan& p) { p.block_tables[kPartial][4] = p.block_tables[kPartial][3]; }},
      {"block release", "the block of c4a partial state 16 of request 1 (row 0) was given back",
       [](StepPlan& p) { p.block_tables[kPartial][4] = 0; }},
      {"prefill plan", "request 3 in row 2 gathers states: 4, expected 3",
       [](StepPlan& p) { ++p.prefill.state_counts[kC4a][0]; }},
      {"prefill plan", "has its first key at 1", [](StepPlan& p) { ++p.prefill.key_offsets[0]; }},
      {"prefill plan", "has its last key before",
       [](StepPlan& p) { ++p.prefill.key_offsets.back(); }},
      {"prefill plan", "keys of a chunk: ", [](StepPlan& p) { ++p.prefill.chunks[0].keys; }},
      {"prefill plan", "attends keys 0 to 2, expected 0 to 1",
       [](StepPlan& p) { ++p.prefill.ends[0]; }},
      {"prefill plan", "attends keys 1 to 1", [](StepPlan& p) { ++p.prefill.starts[0]; }},
      {"prefill plan", "a chunk begins at token 7",
       [](StepPlan& p) { ++p.prefill.chunks[0].first_token; }},
      {"prefill plan", "a chunk begins at row 1",
       [](StepPlan& p) { --p.prefill.chunks[0].first_request; }},
      {"prefill plan", "tokens of a chunk: 6", [](StepPlan& p) { --p.prefill.chunks[0].tokens; }},
      {"prefill plan", "a chunk has no request",
       [](StepPlan& p) { p.prefill.chunks[0].requests = 0; }},
      {"prefill plan", "is in no chunk", [](StepPlan& p) { p.prefill.chunks.clear(); }},
  };
}

TEST(RequestModel, NamesThePartOfAPlanThatIsWrong) {
  Host host;
  admit_three(host);
  const StepPlan right = host.plan(kMixed);
  for (const ChangedPlan& one : changed_plans()) {
    StepPlan plan = right;
    one.change(plan);
    RequestModel model = *host.model;
    const auto wrong = model.check(kMixed, plan);
    ASSERT_TRUE(wrong) << one.part << ": " << one.says;
    EXPECT_EQ(wrong->part, one.part) << wrong->text;
    EXPECT_NE(wrong->text.find(one.says), std::string::npos) << wrong->text;
  }
}

// Requests that all decode fewer tokens than they may are no requests with all tokens.
TEST(RequestModel, CountsTheTokensOfEqualRequests) {
  Host host;
  admit_three(host);
  const ScheduledStep step{.batch = {{1, 2}, {2, 2}}};
  StepPlan plan = host.plan(step);
  EXPECT_EQ(part_of(RequestModel(*host.model).check(step, plan)), "");
  plan.next_n = 4;
  const auto wrong = host.model->check(step, plan);
  EXPECT_EQ(part_of(wrong), "batch");
  EXPECT_EQ(wrong->text, "most tokens that decode: 4, expected 2");
}

// Other tokens take the positions of rejected ones.
TEST(RequestModel, FollowsWhatIsAccepted) {
  Host host;
  admit_three(host);
  for (int i = 0; i < 8; ++i) {
    const auto wrong = host.step(kMixed);
    ASSERT_FALSE(wrong) << wrong->part << ": " << wrong->text;
  }
  host.requests->at(1).rejections -= 1;
  const auto wrong = host.step(kMixed);
  EXPECT_EQ(part_of(wrong), "token_keys");
  EXPECT_NE(wrong->text.find("behind 8 rejections"), std::string::npos) << wrong->text;
}

TEST(RequestModel, ALengthOfTheStepBeforeIsNamedSo) {
  Host host;
  admit_three(host);
  const ScheduledStep step{.batch = {{2, 1}}};
  const StepPlan before = host.plan(step);
  EXPECT_FALSE(host.step(step));
  StepPlan plan = host.plan(step);
  plan.seq_lens = before.seq_lens;
  const auto wrong = host.model->check(step, plan);
  EXPECT_EQ(part_of(wrong), "seq_lens");
  EXPECT_NE(wrong->text.find("this was the length in the previous step"), std::string::npos)
      << wrong->text;
}

// Contents of padding, the time when blocks go back, and the number of prompts per workspace are
// free.
TEST(RequestModel, AllowsWhatAHostMayChoose) {
  Host host;
  admit_three(host);
  EXPECT_EQ(part_of(host.model->check(kMixed, host.plan(kMixed, {77, 1}))), "");
  Host keeps(true);
  EXPECT_EQ(part_of(keeps.come(1, 40, false)), "") << "blocks that nobody sees stay";
  EXPECT_EQ(part_of(keeps.step({.batch = {{1, 1}}})), "");
  Host chunks;
  admit_three(chunks);
  ScheduledStep prompts{.batch = {{1, 4, true}, {3, 7, true}}};
  StepPlan plan = chunks.plan(prompts);
  const auto one = plan.prefill.chunks.front();
  plan.prefill.chunks = {{one.first_request, 1, one.first_token, 4, 6},
                         {one.first_request + 1, 1, one.first_token + 4, 7, 3}};
  plan.prefill.key_offsets = {0, 6, 0, 3};
  for (std::size_t i = 4; i < 11; ++i) {
    plan.prefill.starts[i] -= 6;
    plan.prefill.ends[i] -= 6;
  }
  EXPECT_EQ(part_of(chunks.model->check(prompts, plan)), "");
}

TEST(RequestModel, PromptsAreFilledWhole) {
  Host host;
  Request& request = host.requests->admit(1);
  host.requests->reserve(request, 20);
  StepPlan part = host.fill(request, 16);
  EXPECT_EQ(part_of(RequestModel(*host.model).change({.admitted = {{1, 20}}}, {{1, part}})),
            "prompt");
  EXPECT_EQ(part_of(RequestModel(*host.model).change({.admitted = {{1, 16}}}, {{2, part}})),
            "prompt");
  std::swap(part.positions[0], part.positions[1]);
  EXPECT_EQ(part_of(host.model->change({.admitted = {{1, 16}}}, {{1, part}})), "positions");
}

TEST(RequestModel, APrefixHitHasTheTokensOfTheOther) {
  Host host(true);
  EXPECT_FALSE(host.come(1, 200));
  const auto right = host.come_behind(2, 1, 128);
  ASSERT_FALSE(right) << right->text;
  const auto step = host.step({.batch = {{2, 4, false, 2}, {1, 1}}});
  EXPECT_FALSE(step) << step->text;
}

TEST(RequestModel, AWindowThatAHitDoesNotFindHasToBeFilled) {
  Host host(true);
  EXPECT_FALSE(host.come(1, 200));
  EXPECT_FALSE(host.come_behind(2, 1, 128, false));
  const auto wrong = host.step({.batch = {{2, 1}}});
  EXPECT_EQ(part_of(wrong), "prefix hit");
  EXPECT_NE(wrong->text.find("position 113 of request 2 (row 0) was not written after it took "
                             "its prefix from request 1"),
            std::string::npos)
      << wrong->text;
}

TEST(RequestModel, AHitThatFillsOtherTokensIsNamed) {
  Host host(true);
  EXPECT_FALSE(host.come(1, 200));
  const WindowGaps gaps = host.requests->admit_behind(2, 1, 128);
  Request part = host.requests->at(2);
  StepPlan plan = host.fill(part, gaps);
  plan.token_keys[0] += 1;
  const ScheduledStep hit{.shared = {{2, 1, 128}}};
  EXPECT_EQ(part_of(RequestModel(*host.model).change(hit, {{2, plan}})), "token_keys");
  part.computed = 128;
  host.requests->reserve(part, 136);
  EXPECT_EQ(part_of(host.model->change(hit, {{2, host.fill(part, 8)}})), "prefix hit");
}

// A block of an existing request is given to another one, without the model being told.
TEST(RequestModel, ABlockThatIsStillNeededIsNoOthers) {
  Host host;
  EXPECT_FALSE(host.come(1, 20));
  Requests before = *host.requests;
  EXPECT_FALSE(host.come(2, 20));
  Request& other = before.admit(3);
  before.reserve(other, 20);
  const auto wrong = host.model->change({.admitted = {{3, 20}}}, {{3, host.fill(other, 20)}});
  EXPECT_EQ(part_of(wrong), "block release");
  EXPECT_NE(wrong->text.find("where request 2 still needs c128a partial state 0"),
            std::string::npos)
      << wrong->text;
}

TEST(RequestModel, ABlockBelongsToNobodyAtTheEndOfItsRequest) {
  Host host;
  EXPECT_FALSE(host.come(1, 20));
  host.requests->finish(1);
  EXPECT_FALSE(host.model->change({.finished = {1}}, {}));
  EXPECT_FALSE(host.come(2, 20));
  EXPECT_FALSE(host.step({.batch = {{2, 1}}}));
}

TEST(RequestModel, ABlockThatTheWindowSeesIsNotGivenBack) {
  Host host(true);
  EXPECT_FALSE(host.come(1, 20));
  const ScheduledStep step{.batch = {{1, 1}}};
  StepPlan plan = host.plan(step);
  plan.block_tables[0][0] = 0;  // position 5 is the first that the window sees
  const auto wrong = host.model->check(step, plan);
  EXPECT_EQ(part_of(wrong), "block release");
  EXPECT_NE(wrong->text.find("was given back, although the window still needs it"),
            std::string::npos)
      << wrong->text;
}

TEST(RequestModel, AShortageIsWrongWhereBlocksWouldDo) {
  Host host;
  EXPECT_FALSE(host.come(1, 20));
  EXPECT_EQ(part_of(host.model->check_shortage({.admitted = {{2, 300}}, .batch = {{1, 1}}})),
            "block release");
  ScheduledStep crowd;
  for (std::uint64_t id = 2; id < 9; ++id) crowd.admitted.emplace_back(id, 380);
  EXPECT_FALSE(host.model->check_shortage(crowd));
}

struct OneBlockMore final : RequestPolicy {
  std::int64_t shared_blocks(std::int64_t whole) const override { return whole + 1; }
};
// The other request has given back the block behind the hit. It is no gap: no token is in it.
TEST(Requests, AGapEndsWithTheTokensOfTheHit) {
  Geometry geometry = device::decode::small_geometry(4, 3, 48);
  geometry.frees_window = true;
  const OneBlockMore policy;
  Requests requests(geometry, policy, 1);
  Request& other = requests.admit(1);
  while (other.computed < 200) {
    const std::int64_t chunk = std::min(200 - other.computed, geometry.max_tokens());
    requests.reserve(other, other.computed + chunk);
    other.count(chunk);
    requests.leave(other);
  }
  ASSERT_EQ(other.blocks[0][128 / static_cast<std::size_t>(geometry.pages[0])], 0);
  const WindowGaps gaps = requests.admit_behind(2, 1, 128);
  EXPECT_LT(gaps.begin(), 128);
  EXPECT_EQ(gaps.end(), 128);
}

}  // namespace request_model_test
}  // namespace plumb::cases
