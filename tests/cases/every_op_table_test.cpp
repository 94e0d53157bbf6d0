// SPDX-License-Identifier: Apache-2.0
//
// Each op's table: it covers every member of the op's struct, and recovers every row from its
// launch.
#include <fmt/format.h>
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

// Parameters of a launch of this row. All tensors have the same address, because nothing runs.
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

// Exceptions from the rule of plumb_ops.h that written tensors have strides: these dimensions are
// contiguous. Scratch is not checked: it is used between two passes of one kernel only.
const std::set<std::string, std::less<>> kContiguous = {
    "mhc_pre comb 1",  // the 4 x 4 matrix of a token
    "mhc_fused_post_pre comb 1",
    "mhc_pre_broadcast comb 1",
    "inverse_rope x 1",                    // the heads of a token
    "per_token_group_quant_fp8 scales 0",  // scales by row; scales by column have a stride
    "normalize_e4m3fn_to_e4m3fnuz weight_scale 0",
    "get_decoding_sched_meta tile_scheduler_metadata 0",  // an array of structs
    "get_mla_metadata_v1 work_info_set 0",
    "get_mla_metadata_v1 reduce_final_map 0",
};

TEST_P(OpTables, GiveEachWrittenDimensionButTheLastAStride) {
  const std::vector<OpTable::Field>& fields = op().table->fields();
  std::set<std::string, std::less<>> members, contiguous, known;
  for (const OpTable::Field& field : fields) {
    if (const auto* scalar = std::get_if<TableScalar>(&field)) members.insert(scalar->member.name);
  }
  for (const OpTable::Field& field : fields) {
    const auto* tensor = std::get_if<TableTensor>(&field);
    if (tensor == nullptr || tensor->role != Role::output) continue;
    std::vector<Formula> shape = tensor->shape;
    while (!shape.empty() && shape.back().text() == "1") shape.pop_back();
    for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
      // In rows of logits and blocks of a cache, the last dimension is as long as the stride.
      const bool as_long = i + 2 == shape.size() && members.contains(shape[i + 1].text());
      const bool strided =
          i < tensor->strides.size() ? members.contains(tensor->strides[i].text()) : as_long;
      if (!strided) contiguous.insert(fmt::format("{} {} {}", op().name, tensor->name, i));
    }
  }
  for (const std::string& one : kContiguous) {
    if (one.starts_with(std::string(op().name) + " ")) known.insert(one);
  }
  EXPECT_EQ(contiguous, known);
}

// True if the launch's parameters determine the row. Widened strides and numbers of the struct are
// not row parameters, so solve() cannot recover them. (solve() checks that the row it finds gives
// the parameters of the launch.)
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
