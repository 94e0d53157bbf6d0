// SPDX-License-Identifier: Apache-2.0
//
// Every fault is found, and the report names what was planted. The right kernels pass the same
// cases (case_test.cpp), so a failure is due to the fault.
#include "faults/faults.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cases/studies/right_under.h"
#include "diagnosis/op_run.h"
#include "tests/support/rows_and_cases.h"
#include "tools/report.h"

namespace plumb::cases {

namespace faults_test {

std::string report_of(const CaseResult& result) {
  return tools::failure_text({result, {}, {}, {}, {}}, {});
}

bool names_rows(const CaseResult& result) {
  const auto has_rows = [](const TensorReport& report) { return !report.wrong_rows.empty(); };
  return std::any_of(result.failures.begin(), result.failures.end(), [&](const Failure& failure) {
    return std::any_of(failure.reports.begin(), failure.reports.end(), has_rows);
  });
}

class MutantTest : public testing::TestWithParam<Mutant> {};

TEST_P(MutantTest, IsFoundAndItsRowsAreNamed) {
  const Mutant& mutant = GetParam();
  for (const std::string& platform : mutant.platforms) {
    const CaseResult result =
        run_case(find_case(mutant.case_id), with_mutant(on(platform), mutant));
    EXPECT_EQ(result.outcome, Outcome::failed) << platform << ": " << mutant.why;
    // A damaged guard zone lies outside the tensor, so the report names no rows.
    EXPECT_TRUE(names_rows(result) || mutant.says.find("guard zone") != std::string_view::npos)
        << platform << ": " << mutant.why;
    // For --gtest_output: .ci/run compares the reports of two compilers' builds.
    RecordProperty(platform, report_of(result));
    EXPECT_NE(report_of(result).find(mutant.says), std::string::npos)
        << platform << ": " << mutant.why << "\nthe report lacks \"" << mutant.says << "\":\n"
        << report_of(result);
  }
}

std::string name_of_mutant(const testing::TestParamInfo<Mutant>& info) {
  return std::string(info.param.name);
}

// Whether plumb's own kernel, if launched under this contract (values of the op's choices), gives
// the bytes of the failure, but for those that the contract leaves free.
bool is_kernel_of(const std::string& contract, const Case& which, const CaseResult& failure) try {
  RunOptions options = on(failure.platform);
  options.launched_under = options.judged_under = contract;
  const device::OpEntry* own =
      device::find_entry(device::builtin_implementation(failure.platform), which.op->name);
  const std::unique_ptr<Problem> problem = make_problem(which, options, false);
  const TensorSet& stored = failure.evidence->tensors;
  const TensorSet would = run_once(*problem, *own, failure.platform, *failure.evidence);
  const auto compared = [&](const TensorSet& tensors, const TensorSpec& spec) {
    const auto form = problem->canonical(tensors, spec, failure.evidence->declared);
    return form ? form->bytes() : tensors.at(spec.name).bytes();
  };
  return std::ranges::all_of(stored.all(), [&](const HostTensor& tensor) {
    return compared(stored, tensor.spec()) == compared(would, tensor.spec());
  });
} catch (const device::DeviceError&) {  // these inputs do not occur under that contract
  return false;
}

// No declaration may make a mutant right, unless the mutant is the kernel of another value of a
// choice: one that ignores the choice. Such a kernel is right under looser values too. The
// exception is below: if ties are free, a tie of bf16 sums may be broken by anything, also by the
// fp32 sums.
bool is_permitted(const Mutant& mutant, const std::vector<Alternative>& right) {
  if (mutant.name != "router_bf16_sum_in_fp32") return false;
  return std::ranges::all_of(right, [](const Alternative& one) {
    return one.numerics.empty() && one.contract == "ties=any";
  });
}

TEST_P(MutantTest, IsRightUnderNoDeclaration) {
  const Mutant& mutant = GetParam();
  const Case& which = find_case(mutant.case_id);
  const RunOptions options = with_mutant(on(mutant.platforms.front()), mutant);
  const CaseResult result = run_case(which, options);
  const std::vector<Alternative> right = right_under(which, result, options);
  const auto is_of = [&](const Alternative& one) {
    return one.numerics.empty() && is_kernel_of(one.contract, which, result);
  };
  const bool permitted = is_permitted(mutant, right);
  EXPECT_TRUE(right.empty() || permitted || std::ranges::any_of(right, is_of))
      << mutant.name << ": " << right_if(right) << "; " << mutant.why;
}

INSTANTIATE_TEST_SUITE_P(Mutants, MutantTest, testing::ValuesIn(all_mutants()), name_of_mutant);

// One test per op, so that tests run side by side. Work that a graph leaves out shows on any
// platform, so cases use the simulated platforms in turn.
class DeadReplay : public testing::TestWithParam<std::string> {};

TEST_P(DeadReplay, FailsEveryFullGraphCase) {
  const std::vector<std::string> platforms = {"sim-sm90", "sim-gfx942", "sim-gfx950"};
  std::size_t turn = 0;
  for (const Case& which : cases_of(find_op(GetParam()))) {
    if (which.scenario->mode != Scenario::Mode::full_graph || which.tier() > Tier::standard)
      continue;
    std::vector<std::string> tried = with_real_counterparts({"sim-sm90"});
    tried.front() = platforms[turn++ % platforms.size()];
    for (const std::string& platform : tried) {
      const CaseResult result = run_case(which, with_dead_replay(on(platform)));
      EXPECT_EQ(result.outcome, Outcome::failed)
          << which.id() << " on " << platform << " passes without a replay";
    }
  }
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpDefinition& op : all_ops()) names.emplace_back(op.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, DeadReplay, testing::ValuesIn(op_names()),
                         [](const auto& op) { return op.param; });

// vLLM #42444 is seen in two ways: the graph lacks the planner, and rows are wrong.
TEST(WarmUpStateKept, IsSeenInTheGraphAndInTheRows) {
  const Case& which = find_case("sparse_mla_decode/v4_pro_c4a_dense_growing/full_graph");
  for (const std::string& platform : with_real_counterparts({"sim-sm90", "sim-gfx942"})) {
    const CaseResult result = run_case(which, with_warm_up_state_kept(on(platform)));
    EXPECT_EQ(result.outcome, Outcome::failed) << platform;
    EXPECT_NE(report_of(result).find("a call on fresh state launches"), std::string::npos)
        << report_of(result);
    EXPECT_TRUE(names_rows(result)) << platform;
  }
}

}  // namespace faults_test

}  // namespace plumb::cases
