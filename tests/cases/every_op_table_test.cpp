// SPDX-License-Identifier: Apache-2.0
//
// The table of each op: it has every member of the op's struct, and gives back every row.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cases/drivers/op_chain.h"
#include "cases/tables/op_table.h"
#include "cases/tables/registry.h"
#include "device/device.h"

namespace plumb::cases {
namespace every_op_table_test {

// Parameters of a launch of this row. All tensors have one address.
OpParams launched(const OpTable& table, const Row& row, const device::Properties& platform) {
  OpParams params(table);
  table.set_scalars(row, &platform, params.data());
  DeviceTensors tensors;
  for (const auto& [spec, declared] : table.layout({.params = params.data(), .row = &row})) {
    tensors.set(spec.name, params.data());
  }
  table.bind(tensors, nullptr, params.data());
  return params;
}

class OpTables : public testing::TestWithParam<std::string> {
 protected:
  const OpDefinition& op() const { return find_op(GetParam()); }
};

TEST_P(OpTables, DescribeTheirStructs) {
  ASSERT_NE(op().table, nullptr);
  EXPECT_NO_THROW(op().table->check());
  std::set<std::string, std::less<>> integers, words;
  op().table->collect(integers, words);
  for (const Parameter& parameter : op().parameters) integers.erase(std::string(parameter.name));
  for (const std::string_view word : op().words()) words.erase(std::string(word));
  EXPECT_TRUE(integers.empty()) << "no parameter " << *integers.begin();
  EXPECT_TRUE(words.empty()) << "no word " << *words.begin();
}

// solve() checks that the row it finds gives the parameters of the launch.
// Strides that it widens and numbers that it sets are in no parameter, so no call has them.
bool is_said_by_parameters(const Row& row, const OpDefinition& op) {
  return row.reals.empty() && std::ranges::all_of(row.integers, [&](const auto& said) {
           return std::ranges::find(op.parameters, said.first, &Parameter::name) !=
                  op.parameters.end();
         });
}

TEST_P(OpTables, EveryRowComesBackFromItsLaunch) {
  const auto device = device::open_device("sim-gfx942", {});
  const EngineLimits limits{.requests = 8, .positions = 4096, .query_tokens = 1};
  const OpTable& table = *op().table;
  for (const Case& which : cases_of(op())) {
    if (which.scenario != &all_scenarios().front()) continue;
    if (!is_said_by_parameters(which.row, op())) continue;
    OpParams params = launched(table, which.row, device->properties());
    Row row = ad_hoc_row(op(), {});
    EXPECT_NO_THROW(table.solve(params.data(), limits, row)) << which.id();
    EXPECT_EQ(table.capacity.value({.params = params.data(), .row = &row}),
              table.capacity.value({.params = params.data(), .row = &which.row}))
        << which.id();
  }
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpDefinition& op : all_ops()) names.emplace_back(op.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, OpTables, testing::ValuesIn(op_names()),
                         [](const auto& op) { return op.param; });

}  // namespace every_op_table_test
}  // namespace plumb::cases
