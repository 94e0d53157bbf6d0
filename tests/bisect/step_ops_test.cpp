// SPDX-License-Identifier: Apache-2.0
//
// The search for broken ops in decode steps with planted faults, single and in pairs. All faults
// and all pairs take minutes and run with PLUMB_FULL=1 in the environment only.
#include "bisect/ops/step_ops.h"

#include <gtest/gtest.h>
#include <plumb/ops/cache.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "faults/decode/changed_calls.h"
#include "faults/decode/fault_runs.h"
#include "faults/decode/injections.h"
#include "tests/support/long_tests.h"

namespace plumb::bisect {
namespace step_ops_test {

using cases::DecodeFault;
using cases::DecodeRun;
using cases::DecodeSetup;

// `plant` is called for each watch, because a planted fault may keep state about engines.
OpsReport search(const std::function<DecodeSetup()>& plant, const cases::ScheduleShape& shape) {
  OpsQuestions ask;
  ask.watch = [&](const Ops& exchanged, const std::string&) {
    return watch_exchanged(plant(), shape, exchanged);
  };
  ask.results = [&](const Ops& exchanged) {
    return results_of(with_exchanged(plant(), exchanged), shape);
  };
  return search_ops(exchangeable_ops(), ask);
}

const DecodeFault& fault_of(const std::string& name) {
  for (const DecodeFault& fault : cases::all_decode_faults()) {
    if (fault.name == name) return fault;
  }
  throw std::invalid_argument("no fault " + name);
}

// Searches with this fault planted: the culprit, or the first remaining finding, must be the one
// that the fault names.
void expect_named(const DecodeFault& fault, const std::string& platform) {
  SCOPED_TRACE(fault.name + " on " + platform);
  const auto plant = [&] { return cases::fault_runs({platform}, {&fault}, 0).front(); };
  const DecodeRun run = plant();
  if (!run.not_here.empty()) return;
  const OpsReport report = search([&] { return plant().setup; }, run.schedule);
  // If the fault replaces a launcher, the culprit must be an op.
  const bool replaced = run.setup.implementation != nullptr;
  EXPECT_TRUE(!replaced || report.kind == OpsReport::Conclusion::ops);
  if (report.kind == OpsReport::Conclusion::ops) {
    ASSERT_EQ(report.culprits.size(), 1u);
    EXPECT_EQ(report.culprits.front().op, fault.broken);
    EXPECT_FALSE(report.culprits.front().text.empty());
  } else {
    ASSERT_EQ(report.kind, OpsReport::Conclusion::not_an_op);
    EXPECT_EQ(report.left->op, fault.broken);
    EXPECT_TRUE(report.culprits.empty());
  }
}

TEST(StepOps, NamesTheBrokenOp) {
  for (const char* name : {"hc_eps_lost", "ue8m0_exponent_one_off", "missing_op_replaced"}) {
    expect_named(fault_of(name), "sim-sm90");
  }
}

TEST(StepOps, SaysThatItIsNotAnOp) {
  for (const char* name : {"inverse_rope_left_out", "v32_key_frozen", "padding_writes_slot_0"}) {
    expect_named(fault_of(name), "sim-gfx942");
  }
}

class Long : public testing::Test {
 protected:
  void SetUp() override {
    if (!tests::long_tests_run()) GTEST_SKIP() << tests::kTakesMinutes;
  }
};
using StepOpsLong = Long;

TEST_F(StepOpsLong, NamesWhatIsBrokenInEveryFault) {
  for (const DecodeFault& fault : cases::all_decode_faults()) {
    for (const char* platform : {"sim-sm90", "sim-gfx942"}) expect_named(fault, platform);
  }
}

// Faults of a single op that all show in the same steps, so that they can be paired.
std::vector<const DecodeFault*> faults_of_one_op() {
  std::vector<const DecodeFault*> all;
  for (const DecodeFault& fault : cases::all_decode_faults()) {
    if (!(fault.schedule == cases::kRandom)) continue;
    const DecodeSetup setup = fault.inject({});
    const bool plain = setup.geometry == DecodeSetup().geometry && setup.mode == DecodeSetup().mode;
    if (plain && setup.implementation) all.push_back(&fault);
  }
  return all;
}

void expect_both(const DecodeFault& one, const DecodeFault& other) {
  SCOPED_TRACE(one.name + " and " + other.name);
  const auto plant = [&] { return other.inject(one.inject({})); };
  const OpsReport report = search(plant, cases::kRandom);
  ASSERT_EQ(report.kind, OpsReport::Conclusion::ops);
  Ops named;
  for (const Culprit& culprit : report.culprits) named.insert(culprit.op);
  EXPECT_EQ(named, (Ops{one.broken, other.broken}));
}

TEST_F(StepOpsLong, NamesBothOfEveryPair) {
  const auto faults = faults_of_one_op();
  EXPECT_GE(faults.size(), 12u);
  int pairs = 0;
  for (const DecodeFault* one : faults) {
    for (const DecodeFault* other : faults) {
      if (one >= other || one->broken == other->broken) continue;
      expect_both(*one, *other);
      ++pairs;
    }
  }
  EXPECT_GE(pairs, 50);
}

TEST(StepOps, NamesBothOfAPair) {
  expect_both(fault_of("mhc_fused_comb_transposed"), fault_of("hc_eps_lost"));
}

// A missing op ends the step, so the other fault shows only after it is replaced.
TEST(StepOps, NamesTheOneThatIsHidden) {
  const auto plant = [] {
    return fault_of("missing_op").inject(fault_of("ragged_indptr_one_off").inject({}));
  };
  const OpsReport report = search(plant, cases::kRandom);
  ASSERT_EQ(report.culprits.size(), 2u);
  EXPECT_EQ(report.culprits[0].op, "hc_head");
  EXPECT_EQ(report.culprits[0].hidden_by, "");
  EXPECT_EQ(report.culprits[1].op, "build_ragged_indices_from_dense");
  EXPECT_EQ(report.culprits[1].hidden_by, "hc_head");
}

// Writer and reader of the cache use the same wrong dialect, so their errors cancel.
struct WrittenAsFnuz {
  using Params = plumb_quantize_and_insert_k_cache_params;
  static constexpr const char* op = "quantize_and_insert_k_cache";
  static void change(Params& p) { p.cache.dialect = PLUMB_E4M3FNUZ; }
};
struct ReadAsFnuz {
  using Params = plumb_sparse_mla_decode_params;
  static constexpr const char* op = "sparse_mla_decode";
  static void change(Params& p) { p.main_cache.dialect = p.extra_cache.dialect = PLUMB_E4M3FNUZ; }
};

TEST(StepOps, SaysThatTwoCancel) {
  const auto both = cases::both(cases::changed_call(cases::changed<WrittenAsFnuz>()),
                                cases::changed_call(cases::changed<ReadAsFnuz>()));
  const OpsReport report = search([&] { return both({}); }, cases::kRandom);
  ASSERT_EQ(report.kind, OpsReport::Conclusion::ops);
  ASSERT_EQ(report.culprits.size(), 2u);
  ASSERT_EQ(report.cancelling.size(), 1u);
  const Cancelling& pair = report.cancelling.front();
  EXPECT_EQ((Ops{pair.one, pair.other}), (Ops{"quantize_and_insert_k_cache", "sparse_mla_decode"}));
  EXPECT_LT(pair.both, 0.1);
  EXPECT_GT(pair.one_alone, 3 * pair.both);
}

TEST(StepOps, StepsThatAreRightPass) {
  const auto plant = [] { return DecodeSetup(); };
  EXPECT_EQ(search(plant, cases::kSteady).kind, OpsReport::Conclusion::passes);
}

}  // namespace step_ops_test
}  // namespace plumb::bisect
