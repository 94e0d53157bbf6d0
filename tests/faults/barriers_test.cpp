// SPDX-License-Identifier: Apache-2.0
//
// Every barrier of every kernel is needed: if it does nothing, a case of its op fails. A barrier on
// which nothing depends is listed in kRedundant, with the proof.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cases/drivers/run.h"
#include "device/sim/launch.h"

namespace plumb::cases {

namespace barriers_test {

// "file:line kernel" -> why no case can fail without it.
const std::map<std::string, std::string> kRedundant = {};

// Ops whose smoke cases pass barriers. The other ops need none: they work element by element or
// wave by wave.
const std::set<std::string> kWithBarriers = {
    "build_ragged_indices_from_dense",
    "combine_topk_swa_indices_ragged",
    "compute_global_topk_ragged_indices_and_indptr",
    "fp4_paged_mqa_logits",
    "fp8_mqa_logits",
    "fp8_paged_mqa_logits",
    "fused_add_rms_norm",
    "hc_head",
    "mhc_fused_post_pre",
    "mhc_pre",
    "mhc_pre_broadcast",
    "mtp_input_rms_norm",
    "mtp_shared_head_rms_norm",
    "q_kv_rms_norm",
    "rms_norm",
    "sparse_mla_decode",
    "sparse_mla_prefill",
    "top_k_per_row_decode",
    "top_k_per_row_prefill",
    "v32_paged_metadata",
};

// Smoke rows first: most disabled barriers fail there.
std::vector<Case> cases_of(std::string_view op, Tier most) {
  std::vector<Case> chosen;
  for (const Tier tier : {Tier::smoke, Tier::standard}) {
    for (const Case& which : plumb::cases::cases_of(find_op(op))) {
      const bool eager = which.scenario->mode == Scenario::Mode::eager;
      if (which.row.tier == tier && tier <= most && eager) {
        chosen.push_back(which);
      }
    }
  }
  return chosen;
}

RunOptions on(const std::string& platform) {
  RunOptions options;
  options.platform = platform;
  return options;
}

// The barriers that the smoke cases of an op pass on a platform.
std::set<std::string> barriers_of(std::string_view op, const std::string& platform) {
  device::sim::reset_executed_barriers();
  for (const Case& which : cases_of(op, Tier::smoke)) {
    RunOptions options = on(platform);
    options.tier = Tier::smoke;
    run_case(which, options);
  }
  const auto executed = device::sim::executed_barriers();
  return {executed.begin(), executed.end()};
}

bool fails_without(std::string_view op, const std::string& platform, const std::string& barrier) {
  RunOptions options = on(platform);
  options.disabled_barriers = {barrier};
  for (const Case& which : cases_of(op, Tier::standard)) {
    if (run_case(which, options).outcome == Outcome::failed) return true;
  }
  return false;
}

class BarrierTest : public testing::TestWithParam<std::string> {};

TEST_P(BarrierTest, EachIsNeededOrListedAsRedundant) {
  for (const std::string platform : {"sim-sm90", "sim-gfx942"}) {
    const std::set<std::string> barriers = barriers_of(GetParam(), platform);
    EXPECT_TRUE(!barriers.empty() || !kWithBarriers.contains(GetParam())) << platform;
    for (const std::string& barrier : barriers) {
      if (kRedundant.count(barrier)) continue;
      EXPECT_TRUE(fails_without(GetParam(), platform, barrier))
          << "no case of " << GetParam() << " on " << platform << " needs the barrier at "
          << barrier;
    }
  }
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpDefinition& op : all_ops()) names.emplace_back(op.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, BarrierTest, testing::ValuesIn(op_names()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace barriers_test

}  // namespace plumb::cases
