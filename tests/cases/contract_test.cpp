// SPDX-License-Identifier: Apache-2.0
//
// Contracts that implementations declare: which declarations are refused, and that cases run under
// them.
#include "cases/tables/contract.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <plumb/ops/indexer.h>

#include "cases/drivers/op_chain.h"
#include "cases/drivers/run.h"
#include "faults/replaced_op.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace contract_test {

std::string refusal(std::string_view contract) {
  try {
    under_contract(find_op("rms_norm"), contract, {});
  } catch (const BadContract& error) {
    return error.what();
  }
  return "";
}

TEST(Contract, SetsTheWordsOfARow) {
  const OpDefinition& op = find_op("rms_norm");
  const Row row = ad_hoc_row(op, {}, {{"rounding", "twice"}});
  EXPECT_EQ(under_contract(op, "rounding=once", row).word("rounding"), "once");
  EXPECT_EQ(under_contract(op, "", row).word("rounding"), "twice");
}

TEST(Contract, RefusesWhatTheOpHasNot) {
  EXPECT_EQ(refusal("rounding=twice"), "");
  EXPECT_EQ(refusal("rouding=twice"),
            "rms_norm: there is no choice \"rouding\" (did you mean rounding?)");
  EXPECT_EQ(refusal("rounding=thrice"), "rms_norm: rounding is once or twice, not thrice");
  EXPECT_EQ(refusal("rounding"), "rms_norm: write rounding=value");
  EXPECT_EQ(refusal("rounding=once rounding=once"), "rms_norm: rounding is declared twice");
}

TEST(Contract, RowsWithAnUnknownValueAreRefused) {
  const OpDefinition& op = find_op("rms_norm");
  EXPECT_THROW(op.check_word("rounding", "thrice", "rows.toml:3"), BadRow);
}

const device::OpEntry& own() {
  return *device::find_entry(device::builtin_implementation("sim-sm90"), "indexer_q_rope_quant");
}

// Outcome of a case for a kernel that always uses the floor 1e-10, whatever its parameters say,
// under this declaration.
Outcome outcome(const std::string& row, const std::string& contract) {
  device::OpEntry fixed = own();
  fixed.contract = contract;
  fixed.launch = [](const void* given) {
    auto params = *static_cast<const plumb_indexer_q_rope_quant_params*>(given);
    params.amax_floor = 1e-10F;
    return own().launch(&params);
  };
  RunOptions options{.platform = "sim-sm90"};
  options.implementation = with_op_replaced({fixed, {}});
  return run_case(find_case("indexer_q_rope_quant/" + row + "/eager"), options).outcome;
}

TEST(Contract, OfAKernelIsWhatItsCasesRunUnder) {
  EXPECT_EQ(outcome("v4", "floor=1e-10"), Outcome::passed);
  EXPECT_EQ(outcome("v4", "floor=1e-4"), Outcome::failed);
  EXPECT_EQ(outcome("v4", ""), Outcome::failed);
  EXPECT_EQ(outcome("floor_1e_10", ""), Outcome::passed);
  EXPECT_EQ(outcome("floor_1e_10", "floor=1e-4"), Outcome::failed);
}

// Under a declared contract a row may widen the stride of a tensor that the contract leaves out:
// `partial_lse` without a plan, `q` of a kernel that works in place.
TEST(Contract, OfAKernelMakesEveryRow) {
  const device::Properties platform = device::open_device("sim-sm90")->properties();
  int made = 0;
  for (const OpDefinition& op : all_ops()) {
    for (const Case& which : cases_of(op)) {
      if (which.scenario->mode != Scenario::Mode::eager || which.tier() > Tier::standard) continue;
      for (const ContractChoice& choice : op.choices) {
        for (const std::string_view value : choice.values) {
          const std::string contract = fmt::format("{}={}", choice.name, value);
          EXPECT_NO_THROW(op.make_problem(under_contract(op, contract, which.row), platform))
              << which.id() << " under " << contract;
          ++made;
        }
      }
    }
  }
  EXPECT_GT(made, 5000);
}

// Without a declared contract, widening a missing tensor is an error in the row.
TEST(Contract, OfARowHasTheTensorsThatItWidens) {
  const OpDefinition& op = find_op("q_head_rms_norm_rope");
  const device::Properties platform = device::open_device("sim-sm90")->properties();
  Row row = row_of(op, {}, {{"placement", "in_place"}});
  row.integers["gap_q_token_stride"] = 3;
  try {
    op.make_problem(row, platform);
    FAIL() << "not refused";
  } catch (const BadRow& error) {
    EXPECT_NE(std::string(error.what()).find("gap_q_token_stride = 3 changes nothing"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace contract_test
}  // namespace plumb::cases
