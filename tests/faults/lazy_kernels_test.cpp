// SPDX-License-Identifier: Apache-2.0
//
// A lazy kernel (plumb's own kernel with one added assumption) of each kind fails in a row that
// contradicts its assumption, and passes in others. plumb_kill_table --lazy tries all of them in
// every row, and plumb_kill_table --rare those that are lazy in few launches.
#include "faults/lazy/lazy_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cases/tables/case_file.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace lazy_kernels_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

LazyKernel lazy(const std::string& name) {
  for (const OpDefinition& op : all_ops()) {
    if (!name.starts_with(std::string(op.name) + ".")) continue;
    std::vector<LazyKernel> all = lazy_kernels(op);
    std::ranges::move(rare_lazy_kernels(op), std::back_inserter(all));
    for (const LazyKernel& kernel : all) {
      if (kernel.name() == name) return kernel;
    }
  }
  throw BadRow("no lazy kernel " + name);
}

struct LazyCase {
  std::string kernel, which;
  Settings differs, same;  // settings of the row; empty `same`: no such row
};

const std::vector<LazyCase> kCases{
    {"rms_norm.eps.common", "rms_norm/v4_pro_hidden/eager", {{"eps", "0.3"}}, {{"eps", "1e-6"}}},
    {"rms_norm.x_row_stride.dense",
     "rms_norm/v4_pro_hidden/eager",
     {{"gap_x_row_stride", "3"}},
     {{"gap_out_row_stride", "3"}}},
    {"inverse_rope.out_head_stride.dense",
     "inverse_rope/v4_pro/eager",
     {{"placement", "copy"}, {"gap_out_head_stride", "3"}},
     {{"placement", "copy"}, {"gap_out_token_stride", "3"}}},
    {"rms_norm.hidden.rounded_down.8",
     "rms_norm/v4_pro_hidden/eager",
     {{"hidden", "1004"}},
     {{"hidden", "1000"}}},
    {"rms_norm.weight.absent", "rms_norm/v4_pro_hidden/eager", {{"weight", "1"}}, {}},
    {"rms_norm.weight.zeros", "rms_norm/v4_pro_hidden/eager", {{"weight", "1"}}, {}},
    {"rms_norm.x.first_row", "rms_norm/v4_pro_hidden/eager", {{"tokens", "2"}}, {{"tokens", "1"}}},
    {"rms_norm.out.last_row", "rms_norm/v4_pro_hidden/eager", {{"tokens", "2"}}, {}},
    {"rms_norm.out.last_column", "rms_norm/v4_pro_hidden/eager", {{"tokens", "2"}}, {}},
    {"rms_norm.out.last_element", "rms_norm/v4_pro_hidden/eager", {{"tokens", "2"}}, {}},
    {"rms_norm.x.int32_offsets",
     "rms_norm/v4_pro_hidden/eager",
     {{"far_x_row_stride", "31"}},
     {{"far_out_row_stride", "31"}}},
    {"rms_norm.out.uint32_bytes",
     "rms_norm/v4_pro_hidden/eager",
     {{"far_out_row_stride", "32"}},
     {{"far_x_row_stride", "32"}}},
    {"unpack_seq.lengths.largest", "unpack_seq/indexer_weights/eager", {{"sequences", "4"}}, {}},
    {"rms_norm.hidden.rounded_down.8.if.rounding=1",
     "rms_norm/v4_pro_hidden/eager",
     {{"hidden", "1004"}, {"rounding", "twice"}},
     {{"hidden", "1004"}}},
    {"rms_norm.out.last_row.if.tokens%64",
     "rms_norm/v4_pro_hidden/eager",
     {{"tokens", "128"}},
     {{"tokens", "127"}}},
    {"rms_norm.x.nan", "rms_norm/q_lora/eager", {}, {}},
    {"rms_norm.x.infinity", "rms_norm/v4_flash_hidden/full_graph", {}, {}},
    {"save_partial_states.kv.unusual_nan", "save_partial_states/c4_main/eager", {}, {}},
    {"save_partial_states.kv.negative_zero", "save_partial_states/c4_main/eager", {}, {}},
    {"transform_index_page_table.topk_indices.below_minus_one",
     "transform_index_page_table/v32_decode/eager",
     {},
     {}},
};

class LazyKernels : public testing::TestWithParam<LazyCase> {
 protected:
  static Case case_with(const Settings& settings) {
    Case which = find_case(GetParam().which);
    for (const auto& [name, value] : settings) set_parameter(*which.op, which.row, name, value);
    return which;
  }
  static Outcome outcome(const Case& which) {
    return run_case(which, with_lazy_kernel(on("sim-sm90"), lazy(GetParam().kernel), which))
        .outcome;
  }
};

TEST_P(LazyKernels, FailWhereTheyDifferAndOnlyThere) {
  const Case differs = case_with(GetParam().differs);
  EXPECT_EQ(run_case(differs, on("sim-sm90")).outcome, Outcome::passed);
  EXPECT_TRUE(can_differ(lazy(GetParam().kernel), differs, "sim-sm90"));
  EXPECT_EQ(outcome(differs), Outcome::failed);
  if (GetParam().same.empty()) return;
  const Case same = case_with(GetParam().same);
  EXPECT_FALSE(can_differ(lazy(GetParam().kernel), same, "sim-sm90"));
  EXPECT_EQ(outcome(same), Outcome::passed);
}

INSTANTIATE_TEST_SUITE_P(Kinds, LazyKernels, testing::ValuesIn(kCases), [](const auto& one) {
  std::string name = one.param.kernel;
  const auto is_sign = [](char c) { return c == '.' || c == '=' || c == '%'; };
  std::ranges::replace_if(name, is_sign, '_');
  return name;
});

// Control: changing and restoring a tensor does not fail a case by itself.
TEST(LazyKernel, ThatFindsNothingToChangePasses) {
  const LazyKernel kernel = lazy("rms_norm.x.first_row");
  for (const char* id : {"rms_norm/hidden_1/eager", "rms_norm/hidden_1/full_graph"}) {
    Case which = find_case(id);
    set_parameter(*which.op, which.row, "tokens", "1");
    EXPECT_EQ(run_case(which, with_lazy_kernel(on("sim-sm90"), kernel, which)).outcome,
              Outcome::passed)
        << id;
    set_parameter(*which.op, which.row, "tokens", "5");
    EXPECT_EQ(run_case(which, with_lazy_kernel(on("sim-sm90"), kernel, which)).outcome,
              Outcome::failed)
        << id;
  }
}

// In one process, the launches of one case are followed by those of another.
TEST(LazyKernel, OfTheFirstCallFailsAtTheNextShape) {
  const LazyKernel kernel = lazy("rms_norm.hidden.first_call");
  std::vector<Outcome> outcomes;
  for (const char* id : {"rms_norm/hidden_257/eager", "rms_norm/v4_pro_hidden/eager"}) {
    const Case& which = find_case(id);
    outcomes.push_back(run_case(which, with_lazy_kernel(on("sim-sm90"), kernel, which)).outcome);
  }
  EXPECT_EQ(outcomes, (std::vector{Outcome::passed, Outcome::failed}));
}

TEST(LazyKernel, EveryOpHasSomeAndEachNameOnce) {
  std::set<std::string> names;
  for (const OpDefinition& op : all_ops()) {
    const std::vector<LazyKernel> kernels = lazy_kernels(op);
    EXPECT_GE(kernels.size(), 5u) << op.name;
    for (const LazyKernel& kernel : kernels) {
      EXPECT_TRUE(names.insert(kernel.name()).second) << kernel.name();
    }
  }
}

}  // namespace lazy_kernels_test
}  // namespace plumb::cases
