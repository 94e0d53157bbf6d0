// SPDX-License-Identifier: Apache-2.0
//
// Decode steps as cases: the engine is set up as the row says, and a fault named in the row is
// found.
#include <gtest/gtest.h>
#include <plumb/ops/sparse_mla.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "cases/tables/case_file.h"
#include "decode/checks/cache_checks.h"
#include "decode/schedule/any_case.h"
#include "decode/watch/watch.h"
#include "diagnosis/decode_step_run.h"
#include "faults/decode/decode_faults.h"
#include "faults/decode/planted_case.h"
#include "faults/replaced_op.h"

namespace plumb::cases {
namespace decode_step_case_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

StepCase decode_case(const std::string& id, const Settings& settings = {}) {
  const std::vector<StepCase> all = decode_step_cases();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const StepCase& one) { return one.id() == id; });
  if (found == all.end()) throw std::out_of_range(id);
  StepCase which = *found;
  for (const auto& [name, value] : settings) {
    set_parameter(decode_step_schema(), which.row, name, value);
  }
  return which;
}

StepCaseResult run(const StepCase& which, bool diagnosed = false) {
  RunOptions options;
  options.platform = "sim-sm90";
  return run_decode_step(which, options, diagnosed);
}

// Watches the steps of a case with this implementation.
WatchResult watch_with(const std::string& id, const Implementations& implementation) {
  ServedCase served = planted_case(decode_case(id), "sim-sm90", 0);
  served.setup.implementation = implementation;
  return watch(served.setup, served.shape);
}

const device::OpEntry& own_attention() {
  return *device::find_entry(device::builtin_implementation("sim-sm90"), "sparse_mla_decode");
}

// An attention that writes only its output (no lse, no plan), with scores scaled by kScale.
template <int kScale>
Implementations output_alone() {
  device::OpEntry entry = own_attention();
  entry.contract = "outputs=out plan=none";
  entry.launch = [](const void* given) {
    auto params = *static_cast<const plumb_sparse_mla_decode_params*>(given);
    const bool asked = params.lse != nullptr || params.plan != nullptr ||
                       params.partial_out != nullptr || params.partial_lse != nullptr;
    params.sm_scale *= kScale;
    return asked ? PLUMB_INVALID_ARGUMENT : own_attention().launch(&params);
  };
  return with_op_replaced({entry, {}});
}

TEST(DecodeStepCase, AnAttentionIsAskedForNothingThatItDoesNotPromise) {
  for (const char* id : {"decode_step/v4/full", "decode_step/v4/eager", "decode_step/v32/eager"}) {
    const WatchResult right = watch_with(id, output_alone<1>());
    EXPECT_TRUE(right.clean()) << id << ": " << right.findings.front().text;
    const WatchResult wrong = watch_with(id, output_alone<2>());
    ASSERT_FALSE(wrong.clean()) << id;
    EXPECT_EQ(wrong.findings.front().op, "sparse_mla_decode") << id;
  }
}

TEST(DecodeStepCase, ARowHasACasePerGraphMode) {
  for (const char* mode :
       {"eager", "piecewise", "full", "full_decode_only", "full_and_piecewise", "breakable"}) {
    EXPECT_NO_THROW(decode_case(std::string("decode_step/v4/") + mode)) << mode;
  }
}

TEST(DecodeStepCase, ARowMayListItsGraphModes) {
  const auto ids_of = [](const std::string& modes) {
    std::string ids;
    const CaseFile more{"more.toml",
                        "op = \"decode_step\"\n[[row]]\nname = \"mine\"\nwhy = \"x\"\n"
                        "modes = \"" +
                            modes + "\"\n"};
    for (const StepCase& which : decode_step_cases({more})) ids += which.id() + " ";
    return ids;
  };
  EXPECT_EQ(ids_of("breakable,eager"), "decode_step/mine/breakable decode_step/mine/eager ");
  EXPECT_EQ(ids_of(""),
            "decode_step/mine/eager decode_step/mine/piecewise decode_step/mine/full "
            "decode_step/mine/full_decode_only decode_step/mine/full_and_piecewise "
            "decode_step/mine/breakable ");
  EXPECT_THROW(ids_of("eager,fulll"), BadRow);
  AnyCase full(decode_case("decode_step/v4/full"));
  EXPECT_THROW(full.set_parameter("modes", "eager"), BadRow);
}

TEST(DecodeStepCase, WhatTheRowSaysIsServed) {
  const StepCase which = decode_case("decode_step/v32/piecewise", {{"requests", "7"},
                                                                   {"steps", "9"},
                                                                   {"speculated", "2"},
                                                                   {"seed", "5"},
                                                                   {"lengths", "equal"},
                                                                   {"policy", "late"},
                                                                   {"between", "captures"},
                                                                   {"context", "512"}});
  const ServedCase served = planted_case(which, "sim-sm90", 3);
  EXPECT_EQ(served.setup.mode, device::decode::GraphMode::piecewise);
  EXPECT_EQ(served.setup.geometry.architecture, device::decode::Architecture::v32);
  EXPECT_EQ(served.setup.geometry.max_requests, 7);
  EXPECT_EQ(served.setup.geometry.speculated, 2);
  EXPECT_EQ(served.setup.geometry.max_context, 512);
  EXPECT_EQ(served.setup.geometry.capture_sizes, (std::vector<std::int64_t>{3, 6, 12, 21}));
  EXPECT_EQ(served.setup.conditions.policy, device::Policy::late);
  EXPECT_EQ(served.shape.lengths, Lengths::equal);
  EXPECT_EQ(served.shape.between, Between::captures);
  EXPECT_EQ(served.shape.steps, 9);
  EXPECT_EQ(served.shape.seed, 8u);
}

// Number of steps that a platform runs; 0: the case is skipped.
std::int64_t steps_of(const StepCase& which, const std::string& platform, bool divides) {
  RunOptions options;
  options.platform = platform;
  options.divides_schedules = divides;
  std::int64_t steps = 0;
  StepCaseDriver driver;
  driver.watch = [&](const ServedCase& served, const StepHook&) {
    steps = served.shape.steps;
    return WatchedCase{};
  };
  run_step_case(which, options, driver);
  return steps;
}

TEST(DecodeStepCase, OneOfThePlatformsThatRunTheSameKernelsTakesAllSteps) {
  int longer_on_the_first = 0;
  for (const StepCase& which : decode_step_cases()) {
    const std::int64_t all = which.row.integer("steps");
    // skipped: a mode that the model does not support, or a row for real devices
    if (steps_of(which, "sim-sm90", true) == 0) continue;
    const std::int64_t half = std::max((all + 1) / 2, std::min<std::int64_t>(all, 2));
    EXPECT_EQ(steps_of(which, "sim-sm90", true), all) << which.id();
    EXPECT_EQ(steps_of(which, "sim-gfx950", false), all) << which.id();
    const std::int64_t first = steps_of(which, "sim-gfx942", true);
    const std::int64_t other = steps_of(which, "sim-gfx950", true);
    EXPECT_EQ(std::minmax(first, other), std::minmax(half, all)) << which.id();
    longer_on_the_first += first > other;
  }
  EXPECT_GT(longer_on_the_first, 10);
  EXPECT_LT(longer_on_the_first, 45);
}

TEST(DecodeStepCase, AFaultIsFoundAndPutDownToItsOp) {
  const CaseResult right = run(decode_case("decode_step/v4/full")).result;
  EXPECT_EQ(right.outcome, Outcome::passed) << right.reason;
  EXPECT_EQ(right.launches, 4);
  EXPECT_GT(right.comparisons, 100);
  const auto [wrong, findings, features, digests] =
      run(decode_case("decode_step/v4/full", {{"fault", "ragged_indptr_one_off"}}), true);
  EXPECT_EQ(wrong.outcome, Outcome::failed);
  ASSERT_FALSE(findings.empty());
  EXPECT_TRUE(digests.empty());  // nobody asked for them
  const auto& library = all_decode_faults();
  const auto fault = std::find_if(library.begin(), library.end(), [](const DecodeFault& one) {
    return one.name == "ragged_indptr_one_off";
  });
  EXPECT_EQ(findings.front().op, fault->broken);
  EXPECT_NE(wrong.diagnosis.find("ragged_indptr_one_off"), std::string::npos) << wrong.diagnosis;
}

TEST(DecodeStepCase, WhatARowLeavesOpenIsAsTheFaultHasIt) {
  StepCase which = decode_case("decode_step/v4/full", {{"fault", "v32_tail_not_cleared"}});
  which.row.words.erase("model");
  const ServedCase served = planted_case(which, "sim-sm90", 0);
  EXPECT_EQ(served.setup.geometry.architecture, device::decode::Architecture::v32);
  EXPECT_FALSE(served.setup.geometry.drafter);
}

TEST(DecodeStepCase, WhatCannotBeIsSaid) {
  const auto refuses = [](const Settings& settings, const std::string& what) {
    try {
      planted_case(decode_case("decode_step/v4/full", settings), "sim-sm90", 0);
      ADD_FAILURE() << what << " was not refused";
    } catch (const BadRow& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  refuses({{"traffic", "sideways"}}, "traffic is steady or grow");
  refuses({{"fault", "swa_tail_not_cleare"}}, "did you mean \"swa_tail_not_cleared\"?");
  refuses({{"traffic", "prompts"}, {"prompt_tokens", "0"}},
          "prompts where max_batched_tokens is 0");
  refuses({{"context", "127"}}, "context of 127 tokens; with v4 it is 128 at least");
  refuses({{"model", "v32"}, {"context", "128"}}, "context of 128 tokens; with v32 it is 129");
}

// Tokens and requests of a later chunk do not start at 0, and its lists start within a buffer.
TEST(DecodeStepCase, ABurstIsMorePromptsThanTwoChunksTake) {
  for (const char* name : {"decode_step/v4_burst/full", "decode_step/v32_burst/full"}) {
    const ServedCase served = planted_case(decode_case(name), "sim-sm90", 0);
    std::int64_t most = 0;
    for (const ScheduledStep& step : make_schedule(served.shape, served.setup.geometry)) {
      const auto prompts = std::count_if(step.batch.begin(), step.batch.end(),
                                         [](const auto& one) { return one.prefill; });
      EXPECT_GT(prompts, device::decode::kPrefillRequests) << name;
      most = std::max<std::int64_t>(most, prompts);
    }
    EXPECT_GT(most, 2 * device::decode::kPrefillRequests) << name;
  }
}

TEST(DecodeStepCase, AModeThatTheModelLacksIsSkipped) {
  const CaseResult result = run(decode_case("decode_step/v32/full", {{"speculated", "1"}})).result;
  EXPECT_EQ(result.outcome, Outcome::skipped);
  EXPECT_NE(result.reason.find("one query token only"), std::string::npos) << result.reason;
}

TEST(DecodeStepCase, ARowForRealDevicesIsSkipped) {
  const CaseResult result = run(decode_case("decode_step/v4_production/full")).result;
  EXPECT_EQ(result.outcome, Outcome::skipped);
}

// A block that a second request got while the first one still owns it.
TEST(DecodeStepCase, ABlockOfTwoRequestsIsPartOfAPrefixOrAFinding) {
  using Tables = std::vector<std::int32_t>;
  EXPECT_FALSE(block_of_two(Tables{1, 2, 3, 0, 4, 5, 6, 0}, 4));
  EXPECT_FALSE(block_of_two(Tables{1, 2, 3, 0, 1, 2, 7, 0}, 4)) << "a prefix";
  EXPECT_FALSE(block_of_two(Tables{1, 2, 3, 0, 1, 2, 3, 0}, 4));
  EXPECT_FALSE(block_of_two(Tables{0, 2, 3, 0, 1, 2, 7, 0}, 4)) << "given back by one of them";
  EXPECT_FALSE(block_of_two(Tables{1, 2, 3, 0, 0, 2, 7, 0}, 4)) << "given back by the other";
  const auto behind = block_of_two(Tables{1, 2, 3, 0, 1, 4, 3, 0}, 4);
  ASSERT_TRUE(behind) << "what lies in front is not shared";
  EXPECT_EQ(behind->block, 3);
  const auto elsewhere = block_of_two(Tables{1, 2, 3, 0, 9, 1, 0, 0}, 4);
  ASSERT_TRUE(elsewhere);
  EXPECT_EQ(elsewhere->here, 1);
  EXPECT_EQ(elsewhere->there, 0);
}

// Whether the steps do what the traffic's name says. True for traffic whose name says nothing about
// single steps.
bool happens(Traffic traffic, const std::vector<ScheduledStep>& steps, std::int64_t requests) {
  const auto some = [&](auto&& test) { return std::any_of(steps.begin(), steps.end(), test); };
  const auto ends = [](const ScheduledStep& step) { return !step.finished.empty(); };
  const auto prefills = [](const ScheduledStep& step) {
    return std::ranges::any_of(step.batch, [](const auto& one) { return one.prefill; });
  };
  const auto decodes = [](const ScheduledStep& step) {
    return std::ranges::any_of(step.batch, [](const auto& one) { return !one.prefill; });
  };
  switch (traffic) {
    case Traffic::prefix:
      return some([](const ScheduledStep& step) { return !step.shared.empty(); }) && some(ends);
    case Traffic::prompts:
    case Traffic::burst: return some(prefills);
    case Traffic::join: return some(prefills) && some(decodes) && some(ends);
    case Traffic::replace: return some(ends);
    case Traffic::idle: return some([](const ScheduledStep& step) { return step.batch.empty(); });
    case Traffic::there_and_back:
    case Traffic::shrink:
      return some([&](const ScheduledStep& step) { return std::ssize(step.batch) < requests; });
    default: return true;
  }
}

TEST(DecodeStepCase, EachRowDoesWhatItsTrafficIsNamedFor) {
  for (const StepCase& which : decode_step_cases()) {
    if (!which.id().ends_with("/eager")) continue;  // all modes have the same schedule
    const ServedCase served = planted_case(which, "sim-sm90", 0);
    const auto steps = make_schedule(served.shape, served.setup.geometry);
    EXPECT_TRUE(happens(served.shape.traffic, steps, served.shape.most_requests)) << which.id();
  }
}

TEST(DecodeStepCase, ARowThatNeverDoesWhatItIsNamedForFails) {
  StepCase which = decode_case("decode_step/v4_shared/eager");
  const StepCaseResult right = run(which);
  EXPECT_EQ(right.result.outcome, Outcome::passed);
  for (const char* feature : {"shared", "refilled", "reused", "evicted"}) {
    EXPECT_GT(right.features.at(feature), 0) << feature;
  }
  which.row.words["named_for"] = "shared,idle";
  const CaseResult wrong = run(which).result;
  EXPECT_EQ(wrong.outcome, Outcome::failed);
  ASSERT_EQ(wrong.failures.size(), 1u);
  EXPECT_EQ(wrong.failures.front().lines,
            (std::vector<std::string>{"decode_step/v4_shared never stood idle"}));
  which.row.words["named_for"] = "shraed";
  EXPECT_THROW(run(which), BadRow);
}

// `named_for` belongs to the row as listed; a changed parameter makes other steps.
TEST(DecodeStepCase, AChangedRowIsNamedForNothing) {
  const std::vector<StepCase> all = decode_step_cases();
  const auto found =
      std::ranges::find_if(all, [](const StepCase& one) { return one.row.name == "v4_shared"; });
  ASSERT_NE(found, all.end());
  EXPECT_FALSE(found->row.word(kNamedFor).empty());
  AnyCase changed(*found);
  changed.set_parameter("steps", "2");
  EXPECT_TRUE(changed.row().word(kNamedFor).empty());
}

}  // namespace decode_step_case_test
}  // namespace plumb::cases
