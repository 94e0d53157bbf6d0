// SPDX-License-Identifier: Apache-2.0
//
// An op that is declared while the program runs: its rows, inputs, padding and verdicts.
#include "cases/own_op/own_op.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cases/judge/expectation.h"
#include "cases/tables/case_file.h"
#include "cases/tables/op_table.h"
#include "device/device.h"
#include "reference/formats/bfloat16.h"
#include "reference/tracked/tracked.h"

namespace plumb::cases {
namespace own_op_test {

using reference::Tracked;

Tracked tracked_input(const OwnCall& call, const std::string& name) {
  const OwnInput& input = call.inputs.at(name);
  return {std::get<std::vector<double>>(input.values), input.shape, call.numerics};
}

// out[tokens, hidden] = scale * factor[tokens] * x[tokens, hidden]
// picked[tokens] = 2 * index[tokens]
OwnOp scaled() {
  OwnOp op{.name = "scaled", .summary = "scaled rows", .live = "tokens"};
  op.sizes = {{"tokens", {4, 1, 9}}, {"hidden", {24, 7}}};
  op.reals = {{"scale", 0.5F}};
  op.tensors = {
      {.name = "x", .dtype = Dtype::bf16, .shape = {"tokens", "hidden"}},
      {.name = "factor", .optional = true, .shape = {"tokens"}},
      {.name = "index", .dtype = Dtype::i32, .shape = {"tokens"}, .least = 1, .below = "hidden"},
      {.name = "out", .output = true, .shape = {"tokens", "hidden"}},
      {.name = "picked", .dtype = Dtype::i64, .output = true, .shape = {"tokens"}}};
  op.reference = [](const OwnCall& call) {
    Tracked out = tracked_input(call, "x") * call.reals.at("scale");
    if (call.inputs.contains("factor")) {
      out = out * reshaped(tracked_input(call, "factor"), {call.sizes.at("tokens"), 1});
    }
    auto picked = std::get<std::vector<std::int64_t>>(call.inputs.at("index").values);
    for (std::int64_t& one : picked) one *= 2;
    return std::vector<OwnResult>{estimate_of(out, reference::Format::f32, call.structured),
                                  picked};
  };
  return op;
}

// One call of `scaled`. compute() stores results as an fp32 kernel does.
struct ScaledCall {
  explicit ScaledCall(const Step& which, std::map<std::string, std::int64_t> parameters = {})
      : step(which), made(define_own_op(scaled())) {
    Row row = parse_rows(made.op, made.rows, "rows").front();
    for (const auto& [name, value] : parameters) row.integers[name] = value;
    problem = made.op.make_problem(row, device::open_device("sim-sm90")->properties());
    tensors = problem->make_tensors();
    problem->fill(step, tensors);
    compute([](std::int64_t, float value) { return value; });
  }

  void compute(const std::function<float(std::int64_t row, float value)>& changed) {
    HostTensor& out = tensors.at("out");
    for (std::int64_t row = 0; row < out.rows(); ++row) {
      const float factor =
          tensors.contains("factor") ? tensors.at("factor").data<float>()[row] : 1.0F;
      for (std::int64_t column = 0; column < out.columns(); ++column) {
        const auto x = static_cast<float>(tensors.at("x").value(row, column));
        out.row<float>(row)[column] = changed(row, 0.5F * x * factor);
      }
      tensors.at("picked").data<std::int64_t>()[row] =
          2 * tensors.at("index").data<std::int32_t>()[row];
    }
  }
  std::vector<TensorReport> reports() const {
    return compare(problem->expect(step, tensors, reference::Numerics{}, {}));
  }
  bool passes() const {
    const auto all = reports();
    return !all.empty() && std::ranges::all_of(all, &TensorReport::passed);
  }

  Step step;
  OwnDefinition made;
  std::unique_ptr<Problem> problem;
  TensorSet tensors;
};

Step step_of(std::int64_t live, Fill fill = Fill::real, DeadRows dead = DeadRows::nan) {
  return {.seed = 5, .live = live, .fill = fill, .dead_rows = dead};
}

TEST(OwnOp, IsRightUnderEachFillAndPadding) {
  for (const Fill fill : {Fill::exact, Fill::real, Fill::adversarial}) {
    for (const DeadRows dead : {DeadRows::zero, DeadRows::nan, DeadRows::huge, DeadRows::foreign}) {
      for (const std::int64_t live : {4, 3, 1}) {
        EXPECT_TRUE(ScaledCall(step_of(live, fill, dead)).passes())
            << name_of(fill) << " " << name_of(dead) << " " << live;
      }
    }
  }
}

TEST(OwnOp, IsWrongWhereALiveRowIs) {
  ScaledCall call(step_of(3));
  for (std::int64_t wrong = 0; wrong < 4; ++wrong) {
    call.compute(
        [&](std::int64_t row, float value) { return row == wrong ? 1.001F * value : value; });
    EXPECT_EQ(call.passes(), wrong == 3) << wrong;  // row 3 is padding
  }
}

TEST(OwnOp, HasIntegersThatAreExact) {
  ScaledCall call(step_of(3));
  auto* const picked = call.tensors.at("picked").data<std::int64_t>();
  const auto* const index = call.tensors.at("index").data<std::int32_t>();
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(index[i] >= 1 && index[i] < 24) << index[i];
    ++picked[i];
    EXPECT_EQ(call.passes(), i == 3) << i;
    --picked[i];
  }
}

TEST(OwnOp, WithoutAnOptionalInputIsAnotherCall) {
  ScaledCall call(step_of(4), {{"factor", 0}});
  EXPECT_FALSE(call.tensors.contains("factor"));
  EXPECT_TRUE(call.passes());
}

TEST(OwnOp, GuardsTheGapsBetweenRows) {
  const ScaledCall call(step_of(4), {{"row_gap", 8}, {"out_gap", 16}});
  EXPECT_EQ(call.tensors.at("x").row_offset(1), 24 + 8);
  EXPECT_EQ(call.tensors.at("out").row_offset(1), 24 + 16);
  EXPECT_TRUE(std::isnan(reference::decode_bf16(call.tensors.at("x").data<std::uint16_t>()[24])));
  EXPECT_TRUE(call.passes());
}

TEST(OwnOp, HasSumsOfSizes) {
  OwnOp op = scaled();
  op.tensors[0].shape[1] = "2*hidden/3 + tokens - 1";
  const OwnDefinition made = define_own_op(op);
  const Row row = parse_rows(made.op, made.rows, "rows").front();
  const auto problem = made.op.make_problem(row, device::open_device("sim-sm90")->properties());
  const TensorSet tensors = problem->make_tensors();
  EXPECT_EQ(tensors.at("x").spec().shape, (std::vector<std::int64_t>{4, 2 * 24 / 3 + 4 - 1}));
}

TEST(OwnOp, HasFloatsBetweenTwoNumbers) {
  OwnOp op = scaled();
  op.tensors[0].between = {-3, -1};
  const OwnDefinition made = define_own_op(op);
  const Row row = parse_rows(made.op, made.rows, "rows").front();
  const auto problem = made.op.make_problem(row, device::open_device("sim-sm90")->properties());
  for (const Fill fill : {Fill::exact, Fill::real, Fill::adversarial}) {
    TensorSet tensors = problem->make_tensors();
    problem->fill(step_of(4, fill), tensors);
    std::set<double> values;
    for (std::int64_t i = 0; i < 24; ++i) values.insert(tensors.at("x").value(2, i));
    EXPECT_GE(*values.begin(), -3);
    EXPECT_LE(*values.rbegin(), -1);
    EXPECT_GT(values.size(), 1U);
  }
}

TEST(OwnOp, HasRowsWithOtherReals) {
  const OwnDefinition made = define_own_op(scaled());
  std::set<float> values;
  for (const Row& row : parse_rows(made.op, made.rows, "rows")) {
    values.insert(row.real("scale", 0.5F));
  }
  EXPECT_GE(values.size(), 4U);
}

TEST(OwnOp, HasRowsForEachSize) {
  const OwnDefinition made = define_own_op(scaled());
  std::set<std::string> names;
  for (const Row& row : parse_rows(made.op, made.rows, "rows")) names.insert(row.name);
  for (const char* name : {"usual", "rows_apart", "tokens_1", "tokens_9", "hidden_7",
                           "without_factor", "random_0", "random_3"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_NO_THROW(made.op.table->check());
}

TEST(OwnOp, OfTheWrongNumberOfElementsIsRefused) {
  OwnOp op = scaled();
  op.reference = [](const OwnCall& call) {
    return std::vector<OwnResult>{
        estimate_of(tracked_input(call, "factor"), reference::Format::f32),
        std::vector<std::int64_t>(4)};
  };
  const OwnDefinition made = define_own_op(op);
  const Row row = parse_rows(made.op, made.rows, "rows").front();
  const auto problem = made.op.make_problem(row, device::open_device("sim-sm90")->properties());
  TensorSet tensors = problem->make_tensors();
  problem->fill(step_of(4), tensors);
  EXPECT_THROW(problem->expect(step_of(4), tensors, {}, {}), BadRow);
}

std::string refusal(const std::function<void(OwnOp&)>& change) {
  OwnOp op = scaled();
  change(op);
  try {
    define_own_op(std::move(op));
  } catch (const BadRow& error) {
    return error.what();
  }
  return "";
}

TEST(OwnOp, WithADeclarationThatHasNoMeaningIsRefused) {
  EXPECT_EQ(refusal([](OwnOp&) {}), "");
  EXPECT_EQ(
      refusal([](OwnOp& op) { op.tensors[0].shape[1] = "hiden"; }),
      "scaled: x has the size \"hiden\": \"hiden\" is not a size of the op (did you mean hidden?)");
  EXPECT_EQ(refusal([](OwnOp& op) { op.tensors[2].below = "vocabulary"; }),
            "scaled: index has the size \"vocabulary\": \"vocabulary\" is not a size of the op");
  EXPECT_EQ(refusal([](OwnOp& op) { op.tensors[2].below = "hidden - 2*"; }),
            "scaled: index has the size \"hidden - 2*\": \"\" is not a size of the op");
  EXPECT_EQ(refusal([](OwnOp& op) { op.tensors[1].name = "hidden"; }),
            "scaled: there are two arguments hidden, or plumb has one of this name");
  EXPECT_EQ(refusal([](OwnOp& op) { op.sizes[0].values.clear(); }),
            "scaled: tokens has no value, or one below 1");
  EXPECT_EQ(refusal([](OwnOp& op) { op.sizes[0].values = {4, 0}; }),
            "scaled: tokens has no value, or one below 1");
  EXPECT_EQ(refusal([](OwnOp& op) { op.sizes.push_back({"causal", {1, 0}}); }), "");
  EXPECT_EQ(refusal([](OwnOp& op) { op.sizes.push_back({"causal", {1, -1}}); }),
            "scaled: causal has no value, or one below 0");
  EXPECT_EQ(refusal([](OwnOp& op) { op.tensors[0].between = {1, 0}; }),
            "scaled: x lies between two numbers, the smaller one first");
  EXPECT_EQ(refusal([](OwnOp& op) { op.live = "rows"; }),
            "scaled: live = \"rows\" is not a size of the op");
  EXPECT_EQ(refusal([](OwnOp& op) { op.tensors.resize(3); }), "scaled: has no output");
  const auto grow = [](OwnOp& op) {
    for (int i = 0; i < 40; ++i) {
      op.tensors.push_back({.name = "x" + std::to_string(i), .shape = {"hidden"}});
    }
  };
  EXPECT_EQ(refusal(grow), "scaled: 45 arrays, more than 40");
  EXPECT_EQ(refusal([](OwnOp& op) { op.name = "a b"; }), "\"a b\" is not a valid name of an op");
}

}  // namespace own_op_test
}  // namespace plumb::cases
