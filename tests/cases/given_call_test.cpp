// SPDX-License-Identifier: Apache-2.0
//
// Calls given as tensors and numbers are judged like plumb's own cases: right outputs of every op
// pass, a changed output fails, and contradictory shapes are refused.
#include "cases/tables/given_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cases/judge/right_outputs.h"
#include "cases/studies/outside_call.h"
#include "cases/tables/op_table.h"
#include "cases/tables/registry.h"
#include "device/device.h"
#include "tests/support/rows_and_cases.h"

namespace plumb::cases {
namespace given_call_test {

const device::Properties& sm90() {
  static const device::Properties properties = device::open_device("sim-sm90")->properties();
  return properties;
}

GivenTensor given(const HostTensor& tensor) {
  const auto size = static_cast<std::int64_t>(size_of(tensor.spec().dtype));
  GivenTensor made{
      .dtype = tensor.spec().dtype, .shape = tensor.spec().shape, .data = tensor.bytes().data()};
  std::vector<std::int64_t> strides = tensor.spec().strides;
  for (const std::int64_t stride : strides) made.strides.push_back(stride * size);
  return made;
}

// A call of a row whose outputs are the right ones.
class RightCall {
 public:
  enum class Tables { in_pieces, whole };

  explicit RightCall(const Case& which, Tables tables = Tables::in_pieces)
      : op_(*which.op),
        problem_(op_.make_problem(which.row, sm90())),
        entry_(*device::find_entry(device::builtin_implementation("sim-sm90"), op_.name)),
        tensors_(problem_->make_tensors()) {
    problem_->fill({7, problem_->capacity(), Fill::real, DeadRows::zero}, tensors_);
    call_.in_pieces = tables == Tables::in_pieces;
    if (tables == Tables::whole) make_table_whole();
    const RightOutputs right =
        right_outputs(tensors_, [&](const TensorSet& set) { return expect(*problem_, set); });
    for (const HostTensor& output : right.outputs.all()) {
      tensors_.at(output.spec().name).bytes() = output.bytes();
    }
    call_.words = which.row.words;
    for (const HostTensor& tensor : tensors_.all()) {
      const TensorSpec& spec = tensor.spec();
      if (spec.role == Role::input || spec.role == Role::output) {
        call_.tensors[spec.name] = given(tensor);
      }
    }
    say_what_no_shape_says(which.row);
    // A table in pieces does not show the vocabulary's size in its shape.
    if (which.row.integers.contains("vocabulary") && call_.in_pieces) {
      call_.integers["vocabulary"] = which.row.integer("vocabulary");
    }
  }

  GivenCall& call() { return call_; }
  const OpDefinition& op() const { return op_; }
  TensorSet& tensors() { return tensors_; }

  // False if the row's contract leaves this output open. Only a launch knows the right addresses.
  bool promises(const TensorSpec& spec) const {
    if (spec.format == kAddressFormat) return false;
    const RowMask rows =
        problem_->promised_rows({7, problem_->capacity(), Fill::real, DeadRows::zero}, spec);
    const ColumnRanges columns = problem_->promised_columns(tensors_, spec);
    const auto none = [](const ColumnRange& range) { return range.begin == range.end; };
    if (!columns.empty() && std::ranges::all_of(columns, none)) return false;
    return rows.empty() || std::ranges::find(rows, true) != rows.end();
  }

  std::vector<TensorReport> judge() const {
    const Row row = row_of(op_, call_, sm90(), true);
    const auto problem = op_.make_problem(row, sm90());
    const TensorSet tensors = tensors_of(op_, *problem, call_);
    Expectations all = expect(*problem, tensors);
    std::erase_if(all, [&](const Expectation& one) { return !has_stored(call_, one); });
    return compare(all);
  }

 private:
  Expectations expect(const Problem& problem, const TensorSet& tensors) const {
    plumb_numerics declared = entry_.numerics;
    declared.stores_partials = 0;
    return problem.expect({7, problem.capacity(), Fill::real, DeadRows::zero}, tensors,
                          to_reference(declared), declared);
  }

  // Replaces the case's table (rows of a few positions) by a whole table, as an engine has it.
  void make_table_whole() {
    HostTensor& table = tensors_.at("cos_sin");
    const std::vector<std::int64_t> existing = table.spec().placement;
    HostTensor whole(with_rows(table.spec(), table.rows()));
    whole.bytes() = table.bytes();
    table = std::move(whole);
    HostTensor& positions = tensors_.at("positions");
    for (std::int64_t i = 0; i < positions.elements(); ++i) {
      std::int64_t& position = positions.data<std::int64_t>()[i];
      position = std::ranges::lower_bound(existing, position) - existing.begin();
    }
  }

  // Adds the scalars that the tensors' shapes do not determine, as a kernel's caller passes them.
  void say_what_no_shape_says(const Row& row) {
    OpParams right(*op_.table), found(*op_.table);
    op_.table->set_scalars(row, &sm90(), right.data());
    try {
      op_.table->set_scalars(row_of(op_, call_, sm90(), true), &sm90(), found.data());
    } catch (const BadRow&) {
    }
    std::vector<const TableScalar*> said;
    bool same = true;
    for (const OpTable::Field& field : op_.table->fields()) {
      const auto* scalar = std::get_if<TableScalar>(&field);
      if (scalar == nullptr || scalar->member.name.ends_with("stride")) continue;
      if (scalar->when && scalar->when->value({.params = right.data(), .row = &row}) == 0) continue;
      said.push_back(scalar);
      same = same && scalar->member.same(right.data(), found.data());
    }
    if (same) return;
    for (const TableScalar* scalar : said) {
      const StructMember& member = scalar->member;
      if (member.type == MemberType::f32) {
        call_.reals[member.name] = member.real(right.data());
      } else if (std::get_if<Formula>(&scalar->value) != nullptr) {
        call_.integers[member.name] = member.integer(right.data());
      }
    }
  }

  const OpDefinition& op_;
  std::unique_ptr<Problem> problem_;
  const device::OpEntry& entry_;
  TensorSet tensors_;
  GivenCall call_;
};

std::vector<Case> smoke_rows() {
  std::vector<Case> rows;
  for (const Case& which : all_cases()) {
    if (which.row.tier != Tier::smoke || which.scenario->mode != Scenario::Mode::eager) continue;
    if (!which.row.real_only && which.row.trivial.empty()) rows.push_back(which);
  }
  return rows;
}

std::string refusal(const OpDefinition& op, const GivenCall& call) {
  try {
    row_of(op, call, sm90(), true);
  } catch (const BadRow& error) {
    return error.what();
  }
  return "accepted";
}

TEST(GivenCall, OfEveryOpIsJudged) {
  std::map<std::string_view, int> judged;
  for (const Case& which : smoke_rows()) {
    SCOPED_TRACE(which.id());
    RightCall right(which);
    try {
      for (const TensorReport& report : right.judge())
        EXPECT_TRUE(report.passed()) << report.failures.front();
    } catch (const BadRow& error) {
      ADD_FAILURE() << error.what();
    }
    ++judged[which.op->name];
  }
  EXPECT_EQ(judged.size(), all_ops().size());
}

// Changes every promised output of every op: no expectation is left out because of its name.
TEST(GivenCall, WithAWrongOutputFails) {
  std::set<std::string_view> seen, found;
  for (const Case& which : smoke_rows()) {
    SCOPED_TRACE(which.id());
    RightCall right(which);
    seen.insert(which.op->name);
    for (HostTensor& tensor : right.tensors().all()) {
      if (tensor.spec().role != Role::output || tensor.bytes().empty()) continue;
      if (!right.promises(tensor.spec())) continue;
      const Bytes kept = tensor.bytes();
      for (std::byte& byte : tensor.bytes()) byte ^= std::byte{0x55};
      const bool failed = !std::ranges::all_of(right.judge(), &TensorReport::passed);
      EXPECT_TRUE(failed) << tensor.spec().name;
      if (failed) found.insert(which.op->name);
      tensor.bytes() = kept;
    }
  }
  EXPECT_EQ(found, seen);
}

// Judges two rows (first and last) of each op that has independent rows.
TEST(CallOfManyRows, IsJudgedByASampleInEveryOpWithRows) {
  std::set<std::string_view> sampled, found;
  for (const Case& which : smoke_rows()) {
    SCOPED_TRACE(which.id());
    RightCall right(which);
    const OutsideCall call(std::string(which.op->name), right.call(), {}, true, {.most = 2});
    const CallVerdict verdict = call.judge();
    EXPECT_TRUE(verdict.passed());
    if (verdict.rows_judged == 0) continue;
    EXPECT_EQ(verdict.rows_judged, 2);
    sampled.insert(which.op->name);
    for (HostTensor& tensor : right.tensors().all()) {
      if (tensor.spec().role != Role::output || tensor.bytes().empty()) continue;
      if (!right.promises(tensor.spec())) continue;
      const Bytes kept = tensor.bytes();
      for (std::byte& byte : tensor.bytes()) byte ^= std::byte{0x55};
      const OutsideCall wrong(std::string(which.op->name), right.call(), {}, true, {.most = 2});
      if (!wrong.judge().passed()) found.insert(which.op->name);
      tensor.bytes() = kept;
    }
  }
  EXPECT_EQ(found, sampled);
  EXPECT_GE(sampled.size(), 20);
}

// In each turn one row of the output is wrong. The first and the last row are always found, others
// if the sample has them. The report numbers rows as in the call.
TEST(CallOfManyRows, FindsWrongRowsByTheirNumbersInTheCall) {
  RightCall right(find_case("rms_norm/tokens_256/eager"));
  HostTensor& out = right.tensors().at("out");
  std::set<std::int64_t> found;
  for (std::int64_t row = 0; row < out.rows(); ++row) {
    const Bytes kept = out.bytes();
    for (std::int64_t i = 0; i < out.columns(); ++i) out.row<std::uint16_t>(row)[i] ^= 0x100;
    const OutsideCall call("rms_norm", right.call(), {}, true, {.most = 20, .seed = 3});
    const CallVerdict verdict = call.judge();
    EXPECT_EQ(verdict.rows, 256);
    if (!verdict.passed()) {
      found.insert(row);
      EXPECT_EQ(verdict.outputs.front().report.wrong_rows, std::vector{row});
    }
    out.bytes() = kept;
  }
  EXPECT_TRUE(found.size() == 20 && found.contains(0) && found.contains(255));
  const auto judged = [&](const RowSampling& some) {
    return OutsideCall("rms_norm", right.call(), {}, true, some).judge().rows_judged;
  };
  EXPECT_EQ(judged({}) + judged({.budget = 1e12}), 0) << "no limit, and a cheap call: all rows";
  EXPECT_EQ(judged({.budget = 1}), 16);
  EXPECT_EQ(judged({.most = 1}), 2) << "both ends";
}

TEST(GivenCall, ThatDoesNotFitIsRefusedInItsOwnWords) {
  const auto call_of = [](std::vector<std::int64_t> x, std::vector<std::int64_t> weight) {
    GivenCall call;
    call.tensors["x"] = {.dtype = Dtype::bf16, .shape = std::move(x)};
    call.tensors["out"] = call.tensors["x"];
    call.tensors["weight"] = {.dtype = Dtype::bf16, .shape = std::move(weight)};
    return call;
  };
  const OpDefinition& op = find_op("rms_norm");
  EXPECT_EQ(refusal(op, call_of({2, 8}, {8})), "accepted");
  EXPECT_EQ(refusal(op, call_of({2, 8}, {7})),
            "rms_norm: weight has the shape [7]; by the other arguments it is [8] ([hidden])");
  GivenCall call = call_of({2, 8}, {8});
  call.tensors.erase("out");
  EXPECT_EQ(refusal(op, call), "rms_norm: out [2, 8] is missing");
  call = call_of({2, 8}, {8});
  call.reals["epss"] = 1;
  EXPECT_EQ(refusal(op, call), "rms_norm: there is no epss (did you mean eps?)");
  call.reals.clear();
  call.integers["hidden"] = 9;
  EXPECT_EQ(refusal(op, call),
            "rms_norm: x has the shape [2, 8]; by the other arguments it is [2, 9] ([tokens, "
            "hidden])");
  call.integers = {{"x_row_stride", 4}};
  EXPECT_EQ(refusal(op, call), "rms_norm: row_gap = -4 is outside 0 .. 1048576");
  call = call_of({2, 8, 1}, {8});
  EXPECT_NE(refusal(op, call), "accepted");
}

// An engine's table of cosines and sines has one row per position of the model, more than a case.
TEST(GivenCall, HasATableOfTheEnginesOwnSize) {
  const auto rows = smoke_rows();
  const auto which = std::ranges::find_if(
      rows, [](const Case& one) { return one.op->name == "q_head_rms_norm_rope"; });
  ASSERT_NE(which, rows.end());
  RightCall right(*which, RightCall::Tables::whole);
  const HostTensor& table = right.tensors().at("cos_sin");
  std::vector<float> longer(static_cast<std::size_t>(table.elements()) + 64 * 1000);
  std::copy_n(table.data<float>(), table.elements(), longer.begin());
  GivenTensor& given = right.call().tensors.at("cos_sin");
  given.shape[0] += 1000;
  given.data = reinterpret_cast<const std::byte*>(longer.data());
  for (const TensorReport& report : right.judge()) EXPECT_TRUE(report.passed()) << report.tensor;

  given.shape[0] = 1;
  try {
    right.judge();
    ADD_FAILURE() << "positions beyond the table";
  } catch (const BadRow& error) {
    EXPECT_NE(std::string(error.what()).find("and cos_sin has 1 rows"), std::string::npos)
        << error.what();
  }
  given.shape[1] = 32;
  EXPECT_THROW(right.judge(), BadRow) << "its columns are not the engine's";
}

// The table of token ids has one row for each id of the model's vocabulary.
TEST(GivenCall, HasTheVocabularyOfTheModel) {
  constexpr std::int64_t kExperts = 8, kChosen = 2, kTokens = 3;
  for (const std::int64_t vocabulary : {1, 50, 96, 97, 129280}) {
    SCOPED_TRACE(vocabulary);
    HostTensor logits({"logits", Dtype::f32, {kTokens, kExperts}});
    HostTensor input_ids({"input_ids", Dtype::i32, {kTokens}});
    HostTensor table({"tid2eid", Dtype::i32, {vocabulary, kChosen}});
    HostTensor weights({"weights", Dtype::f32, {kTokens, kChosen}}),
        ids({"ids", Dtype::i32, {kTokens, kChosen}});
    for (std::int64_t id = 0; id < vocabulary; ++id) {
      for (int i = 0; i < kChosen; ++i) {
        table.row<std::int32_t>(id)[i] = static_cast<std::int32_t>((id + i) % kExperts);
      }
    }
    auto* tokens = input_ids.data<std::int32_t>();
    for (int t = 0; t < kTokens; ++t) {
      tokens[t] = static_cast<std::int32_t>(t * (vocabulary - 1) / 2);
      for (int i = 0; i < kChosen; ++i) {
        ids.row<std::int32_t>(t)[i] = table.row<std::int32_t>(tokens[t])[i];
        weights.row<float>(t)[i] = 1.0f / kChosen;
      }
    }
    GivenCall call;
    call.reals["routed_scaling_factor"] = 1;
    call.integers["renormalize"] = 1;
    for (const HostTensor* tensor : {&logits, &input_ids, &table, &weights, &ids}) {
      call.tensors[tensor->spec().name] = given(*tensor);
    }
    call.tensors["weights_before"] = call.tensors["weights"];
    call.tensors["ids_before"] = call.tensors["ids"];
    EXPECT_TRUE(OutsideCall("hash_routing", call, {}, true).judge().passed());
    ids.row<std::int32_t>(2)[0] += 1;
    EXPECT_FALSE(OutsideCall("hash_routing", call, {}, true).judge().passed());
    for (const std::int64_t stranger : {std::int64_t{-1}, vocabulary}) {
      tokens[0] = static_cast<std::int32_t>(stranger);
      EXPECT_THROW(OutsideCall("hash_routing", call, {}, true).judge(), BadRow) << stranger;
    }
  }
}

TEST(GivenCall, RefusesNumericsThatNoKernelHas) {
  RightCall right(find_case("rms_norm/q_lora/eager"));
  const auto with = [&](const std::string& name, double value) {
    OutsideCall("rms_norm", right.call(), {{name, value}}, true).judge();
  };
  EXPECT_NO_THROW(with("product", 1));
  for (const double value : {-24.0, 5.0, 0.5, 1e300, std::nan("")}) {
    EXPECT_THROW(with("product", value), BadRow) << value;
  }
  EXPECT_THROW(with("chains", 0), BadRow);
  EXPECT_THROW(with("sum_step", -1), BadRow);
  EXPECT_THROW(with("function_ulp", -1), BadRow);
  EXPECT_THROW(with("function_ulp", std::nan("")), BadRow);
}

TEST(GivenCall, HasTheCallersOwnNumbers) {
  const OpDefinition& op = find_op("rms_norm");
  HostTensor x({"x", Dtype::bf16, {1, 4}}), out({"out", Dtype::bf16, {1, 4}, {}, Role::output});
  for (int i = 0; i < 4; ++i) x.data<std::uint16_t>()[i] = 0x3c00;  // 2^-7
  GivenCall call;
  call.tensors["x"] = given(x);
  call.tensors["out"] = given(out);
  const auto value_with = [&](float eps) {
    call.reals["eps"] = eps;
    const Row row = row_of(op, call, sm90(), true);
    const auto problem = op.make_problem(row, sm90());
    const auto& numerics =
        device::find_entry(device::builtin_implementation("sim-sm90"), "rms_norm")->numerics;
    const Expectations all =
        problem->expect({0, 1, Fill::real, DeadRows::zero}, tensors_of(op, *problem, call),
                        to_reference(numerics), numerics);
    return all.front().truth->estimate()->value.front();
  };
  constexpr double kX = 0x1p-7;
  EXPECT_NEAR(value_with(1e-6f), kX / std::sqrt(kX * kX + 1e-6), 1e-6);
  EXPECT_NEAR(value_with(1e-3f), kX / std::sqrt(kX * kX + 1e-3), 1e-6);
}

}  // namespace given_call_test
}  // namespace plumb::cases
