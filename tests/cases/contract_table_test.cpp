// SPDX-License-Identifier: Apache-2.0
//
// A choice is a question about an op that right kernels answer differently. For every two of its
// values, a kernel of one that is judged under the other fails in a row of the default tier, or a
// mark says why it fails in none. The report of the failure names the kernel's value.
#include "cases/studies/contract_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cases/studies/right_under.h"
#include "cases/tables/contract.h"

namespace plumb::cases {
namespace contract_table_test {

// The cases of plumb's op of this name, assigned to `op`, which may have other choices.
std::vector<Case> cases_for(const OpDefinition& op) {
  std::vector<Case> cases = cases_of(find_op(op.name));
  for (Case& which : cases) which.op = &op;
  return cases;
}

std::vector<ContractPair> pairs_of(const OpDefinition& op) {
  return contract_pairs(op, cases_for(op), kContractPlatform);
}

std::string page() {
  std::ifstream file(std::filesystem::path(PLUMB_SOURCE_DIR) / "docs/operations/contracts.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

// True if the alternative is the kernel's value, or a value that no row separates from it.
bool is_value_of(const ContractPair& pair, const OpDefinition& op, const Alternative& found) {
  if (!found.numerics.empty() || !found.contract.starts_with(pair.choice + "=")) return false;
  const std::string value = found.contract.substr(pair.choice.size() + 1);
  const auto choice = std::ranges::find(op.choices, pair.choice, &ContractChoice::name);
  return value == pair.of || !choice->why_unseparated(pair.of, value).empty();
}

class EveryChoice : public testing::TestWithParam<std::string> {};

TEST_P(EveryChoice, HasARowForEachPairOfItsValues) {
  const OpDefinition& op = find_op(GetParam());
  const std::vector<ContractPair> pairs = pairs_of(op);
  for (const std::string& line : objections(op, pairs)) ADD_FAILURE() << line;
  EXPECT_NE(page().find(contract_section(op, pairs)), std::string::npos)
      << "plumb list --contracts >docs/operations/contracts.md makes it anew";
  for (const ContractPair& pair : pairs) {
    if (!pair.is_separated()) continue;
    const RunOptions options = with_kernel_of(pair, kContractPlatform);
    std::vector<Alternative> found = right_under(pair.separated_by, pair.failure, options);
    if (found.empty()) found = passes_under(pair.separated_by, pair.failure, options);
    const auto names_it = [&](const Alternative& one) { return is_value_of(pair, op, one); };
    EXPECT_TRUE(std::ranges::any_of(found, names_it))
        << pair.separated_by.id() << " under " << pair.under << " does not say " << pair.of;
  }
}

std::vector<std::string> ops_with_choices() {
  std::vector<std::string> names;
  for (const OpDefinition& op : all_ops()) {
    if (!op.choices.empty()) names.emplace_back(op.name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Ops, EveryChoice, testing::ValuesIn(ops_with_choices()),
                         [](const auto& op) { return op.param; });

// rms_norm with a choice that its kernel ignores.
OpDefinition norm_with(ContractChoice choice) {
  OpDefinition op = find_op("rms_norm");
  op.choices = {std::move(choice)};
  return op;
}
std::vector<ContractPair> pairs_of_few(const OpDefinition& op) {
  std::vector<Case> cases = cases_for(op);
  std::erase_if(cases, [](const Case& which) { return which.tier() != Tier::smoke; });
  return contract_pairs(op, cases, kContractPlatform);
}

TEST(ContractTable, RefusesAChoiceThatNoRowTellsApart) {
  const OpDefinition op = norm_with({"colour", {"red", "blue"}, "of nothing"});
  const std::vector<std::string> said = objections(op, pairs_of_few(op));
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said.front(),
            "rms_norm: a kernel of colour=blue under colour=red fails in no row of the default "
            "tier, and no mark says why");
}

TEST(ContractTable, TakesAMarkForOneDirectionOnly) {
  const OpDefinition op =
      norm_with({"colour", {"red", "blue"}, "of nothing", {{"blue", "red", "red permits blue"}}});
  const std::vector<ContractPair> pairs = pairs_of_few(op);
  const std::vector<std::string> said = objections(op, pairs);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(said.front().starts_with("rms_norm: a kernel of colour=red under colour=blue"));
  EXPECT_NE(
      contract_section(op, pairs).find("| `colour=red` | `colour=blue` | none: red permits blue |"),
      std::string::npos);
}

TEST(ContractTable, RefusesAMarkOfAPairThatARowTellsApart) {
  ContractChoice rounding = find_op("rms_norm").choices.front();
  rounding.unseparated = {{"*", "twice", "nobody looks"}};
  const OpDefinition op = norm_with(rounding);
  const std::vector<std::string> said = objections(op, pairs_of_few(op));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said.front().find("but is marked as not separated: nobody looks"), std::string::npos);
}

}  // namespace contract_table_test
}  // namespace plumb::cases
