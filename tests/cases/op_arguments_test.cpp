// SPDX-License-Identifier: Apache-2.0
//
// The arguments of an op are derived from its table, as everything else about its tensors.
#include "cases/tables/op_arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cases/drivers/op_chain.h"
#include "cases/drivers/session.h"
#include "cases/tables/given_call.h"
#include "cases/tables/launch_arguments.h"
#include "cases/tables/table_part.h"
#include "cases/tables/table_problem.h"
#include "decode/recording/call_record.h"
#include "tools/bench/bench_device.h"

namespace plumb::cases {
namespace op_arguments_test {

// docs/operations/arguments.md must equal the page that is made from the tables.
TEST(OpArguments, PageIsMadeOfTheTables) {
  std::ifstream file(std::filesystem::path(PLUMB_SOURCE_DIR) / "docs/operations/arguments.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(page, arguments_page())
      << "plumb list --arguments >docs/operations/arguments.md makes it anew";
}

TEST(OpArguments, EachSaysWhatItMeans) {
  for (const OpDefinition& op : all_ops()) {
    for (const OpArgument& argument : arguments_of(op)) {
      EXPECT_NE(argument.says, "") << op.name << ": " << argument.name;
    }
  }
}

TEST(OpArguments, WordsAreRefusedWithWhatTheyCanBe) {
  for (const OpDefinition& op : all_ops()) {
    for (const WordParameter& word : op.word_parameters) {
      EXPECT_FALSE(word.values.empty()) << op.name << ": " << word.name;
      EXPECT_THROW(op.check_word(word.name, "nonsense", "here"), BadRow) << op.name;
      for (const std::string_view value : word.values) {
        EXPECT_NO_THROW(op.check_word(word.name, value, "here"));
      }
    }
  }
}

struct BiasedParams {
  const std::uint16_t* x;
  const float* bias;
  float* out;
  std::int64_t rows, columns;
  plumb_stream stream;
};
template <bool has_bias>
Formula biased_members(TablePart<BiasedParams>& t) {
  const Formula rows = t.scalar("rows", &BiasedParams::rows);
  const Formula columns = t.scalar("columns", &BiasedParams::columns);
  t.input("x", &BiasedParams::x, {rows, columns});
  if constexpr (has_bias) t.input("bias", &BiasedParams::bias, {columns}, "added to each row");
  t.output("out", &BiasedParams::out, {rows, columns});
  return rows;
}
// Built by hand instead of with table_of: without the line for its bias the table is refused.
OpTable biased_table(bool has_bias) {
  OpTable table(sizeof(BiasedParams));
  TablePart<BiasedParams> part(table);
  table.capacity = has_bias ? biased_members<true>(part) : biased_members<false>(part);
  return table;
}

struct BiasedProblem : TableProblem<BiasedParams> {
  using TableProblem::TableProblem;
  void fill(const Step&, TensorSet&) const override {}
  Expectations expect(const Step&, const TensorSet&, const reference::Numerics&,
                      const plumb_numerics&) const override {
    return {};
  }
  double cost() const override { return 1; }
};

// The bias pointer of a launch of plumb bench, and the bytes that plumb bench counts for it.
struct BenchedLaunch {
  const float* bias = nullptr;
  double bytes = 0;
};
BenchedLaunch benched(const OpDefinition& op, const Row& row) {
  static const float* bias;
  device::OpEntry entry;
  entry.op = "biased";
  entry.launch = [](const void* params) {
    bias = static_cast<const BiasedParams*>(params)->bias;
    return PLUMB_OK;
  };
  const device::Implementation implementation{.name = "test", .entries = {entry}};
  RunOptions options{.platform = "sim-sm90"};
  options.implementation = [&](std::string_view, bool) -> const device::Implementation& {
    return implementation;
  };
  const BiasedProblem problem(*op.table, row, device::open_device("sim-sm90")->properties());
  CaseResult result;
  const Point point;
  Session session(problem, {&op, row}, point, options, result);
  Buffers buffers = session.make_buffers();
  session.set_inputs({.live = 2}, buffers);
  session.launch(buffers);
  return {bias, problem.moved_bytes(problem.make_tensors())};
}

template <class Named>
bool has_bias_of(const std::vector<Named>& all) {
  return std::any_of(all.begin(), all.end(), [](const Named& one) { return one.name == "bias"; });
}

// Why a call from Python with only x and out is refused; "" if it is accepted.
std::string refusal_without_bias(const OpDefinition& op) {
  const std::vector<float> numbers(2 * 3);
  const auto* data = reinterpret_cast<const std::byte*>(numbers.data());
  GivenCall call;
  call.tensors["x"] = {.dtype = Dtype::bf16, .shape = {2, 3}, .strides = {6, 2}, .data = data};
  call.tensors["out"] = {.dtype = Dtype::f32, .shape = {2, 3}, .strides = {12, 4}, .data = data};
  try {
    row_of(op, call, device::open_device("sim-sm90")->properties(), true);
    return "";
  } catch (const BadRow& error) {
    return error.what();
  }
}

// One line in the table is enough for a new tensor: host tensors, launch, recorded call, recorded
// launch, plumb show, plumb bench, the page of arguments and Python all have it.
TEST(OpArguments, ATensorInTheTableIsEverywhere) {
  Row row;
  row.op = "biased";
  row.integers = {{"rows", 2}, {"columns", 3}};
  for (const bool has_bias : {false, true}) {
    const OpTable table = biased_table(has_bias);
    OpDefinition op;
    op.name = "biased";
    op.parameters = {{"rows", 1, 0, 9, "how many"}, {"columns", 1, 0, 9, "of each"}};
    op.table = &table;
    OpParams params(table);
    table.set_scalars(row, nullptr, params.data());
    const auto tensors = table.layout({.params = params.data(), .row = &row});
    const auto placed = std::find_if(tensors.begin(), tensors.end(),
                                     [](const auto& one) { return one.spec.name == "bias"; });
    DeviceTensors addresses;
    float numbers[3] = {};
    for (const char* name : {"x", "bias", "out"}) addresses.set(name, numbers);
    table.bind(addresses, nullptr, params.data());
    const auto memory = [](const void*) { return std::size_t{1} << 20; };
    EXPECT_EQ(has_bias_of(launch_arguments(op, params.data(), memory)), has_bias);
    const auto bindings = record_of(op, params.data(), {}).bindings;
    EXPECT_EQ(std::ranges::count(bindings, "bias", &Binding::tensor), has_bias ? 1 : 0);
    EXPECT_EQ(refusal_without_bias(op), has_bias ? "biased: bias [3] is missing" : "");
    const std::vector<OpArgument> arguments = arguments_of(op);
    const auto argument = std::find_if(arguments.begin(), arguments.end(),
                                       [](const auto& one) { return one.name == "bias"; });
    EXPECT_EQ(placed != tensors.end(), has_bias);
    EXPECT_EQ(argument != arguments.end(), has_bias);
    const BenchedLaunch launch = benched(op, row);
    EXPECT_EQ(launch.bias != nullptr, has_bias);
    EXPECT_EQ(launch.bytes, 2 * 3 * (2 + 4) + (has_bias ? 3 * 4 : 0));
    if (!has_bias) continue;
    EXPECT_EQ(placed->spec.shape, std::vector<std::int64_t>{3});
    EXPECT_EQ(table.describe(placed->spec), "bias [columns]: added to each row");
    EXPECT_EQ(argument->shape, "[columns]");
    EXPECT_EQ(argument->says, "added to each row");
    EXPECT_EQ(static_cast<const BiasedParams*>(params.data())->bias, numbers);
    EXPECT_EQ(placed->declared->member.pointer(params.data()), numbers);
  }
}

// Checks that the rows exist. Launching them needs a real device.
TEST(BenchedOps, AreRowsOfTheirOps) {
  const auto device = device::open_device("sim-sm90");
  for (const tools::DeviceOp& benched : tools::device_ops()) {
    const OpDefinition& op = find_op(benched.op);
    const Row row = ad_hoc_row(op, benched.integers, benched.words);
    EXPECT_GT(op.make_problem(row, device->properties())->capacity(), 0) << benched.name();
  }
}

}  // namespace op_arguments_test
}  // namespace plumb::cases
