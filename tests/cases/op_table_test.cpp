// SPDX-License-Identifier: Apache-2.0
//
// Op tables: a right table gives tensors, launches and rows; a wrong table is refused.
#include "cases/tables/op_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases/tables/table_part.h"

namespace plumb::cases {
namespace op_table_test {

struct SampleSize {
  std::int64_t rows;
  std::int32_t columns, gap;
};
struct SamplePlan {
  std::int32_t* tiles;
  std::int32_t parts;
};
struct SampleParams {
  const std::uint16_t* x;
  float* out;
  SampleSize size;
  const SamplePlan* plan;
  std::int64_t stride;
  float eps, factor;
  plumb_stream stream;
};
using P = SampleParams;

Formula members(TablePart<P>& t) {
  auto size = t.part("size", &P::size);
  const Formula rows = size.scalar("rows", &SampleSize::rows);
  const Formula columns = size.scalar("columns", &SampleSize::columns, parameter("pairs") * 2);
  const Formula gap = size.scalar("gap", &SampleSize::gap);
  const Formula stride = t.scalar("stride", &P::stride, columns + gap * 4);
  t.real("eps", &P::eps, 0.5F, "a number");
  t.real("factor", &P::factor, {"factor", [](std::int64_t n) { return 0.1F * float(n); }, 9},
         "another one");
  auto plan = t.pointed("plan", &P::plan);
  const Formula parts = plan.scalar("parts", &SamplePlan::parts, div_up(rows, 2));
  t.input("x", &P::x, {rows, columns}, "rows to add").strides({stride, 1});
  t.output("out", &P::out, {rows}).when(parameter("sums"));
  plan.state("tiles", &SamplePlan::tiles, {parts, 8});
  return rows;
}

Row row_of(std::int64_t rows, std::int64_t pairs, std::int64_t gap, std::int64_t sums) {
  Row row;
  row.op = "sample";
  row.integers = {{"rows", rows}, {"pairs", pairs}, {"gap", gap}, {"sums", sums}, {"factor", 3}};
  return row;
}

// A launch of the sample op for a row, with arbitrary tensor addresses.
class SampleCall {
 public:
  explicit SampleCall(const Row& row) : params_(table_of<members>()) {
    const OpTable& table = table_of<members>();
    table.set_scalars(row, nullptr, params_.data());
    DeviceTensors tensors;
    for (const auto& [spec, declared] : table.layout({.params = params_.data(), .row = &row})) {
      tensors.set(spec.name, &places_[tensors_++]);
    }
    table.bind(tensors, this, params_.data());
  }
  P& params() { return *static_cast<P*>(params_.data()); }
  const int* place(int tensor) const { return &places_[tensor]; }
  int tensors() const { return tensors_; }
  Row solved() {
    Row row = row_of(0, 0, 0, 0);
    table_of<members>().solve(params_.data(), {}, row);
    return row;
  }

 private:
  OpParams params_;
  int places_[3] = {}, tensors_ = 0;
};

template <class Exception, class F>
std::string refusal(const F& call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  return "accepted";
}

TEST(OpTable, ARowGivesScalarsShapesAndPointers) {
  const Row row = row_of(3, 4, 1, 1);
  SampleCall call(row);
  const P& p = call.params();
  EXPECT_EQ(p.size.rows, 3);
  EXPECT_EQ(p.size.columns, 8);
  EXPECT_EQ(p.stride, 12);
  EXPECT_EQ(p.eps, 0.5F);
  EXPECT_EQ(p.plan->parts, 2);
  EXPECT_EQ(p.stream, &call);
  ASSERT_EQ(call.tensors(), 3);
  EXPECT_EQ(static_cast<const void*>(p.x), call.place(0));
  EXPECT_EQ(static_cast<const void*>(p.out), call.place(1));
  EXPECT_EQ(static_cast<const void*>(p.plan->tiles), call.place(2));
  const auto layout = table_of<members>().layout({.params = &p, .row = &row});
  EXPECT_EQ(layout[0].spec.shape, (std::vector<std::int64_t>{3, 8}));
  EXPECT_EQ(layout[0].spec.strides, (std::vector<std::int64_t>{12, 1}));
  EXPECT_EQ(layout[2].spec.role, Role::state);
  EXPECT_EQ(table_of<members>().describe(layout[0].spec),
            "x [size.rows, size.columns]: rows to add");
}

TEST(OpTable, ACallGivesTheRow) {
  for (const Row& row : {row_of(3, 4, 1, 1), row_of(3, 4, 0, 0), row_of(0, 1, 2, 1)}) {
    EXPECT_EQ(SampleCall(row).solved().integers, row.integers);
  }
}

TEST(OpTable, ACallThatNoRowDescribesIsRefused) {
  const auto refused = [](const auto& change) {
    SampleCall call(row_of(3, 4, 1, 1));
    change(call.params());
    return refusal<std::invalid_argument>([&] { call.solved(); });
  };
  EXPECT_EQ(refused([](P& p) { const_cast<SamplePlan*>(p.plan)->parts = 5; }),
            "sample: the call has plan->parts = 5, the row that describes it 2");
  EXPECT_EQ(refused([](P& p) { p.x = nullptr; }),
            "sample: the call has no x, the row that describes it has one");
  EXPECT_EQ(refused([](P& p) { p.size.columns = 7; }),
            "sample: size.columns: a quotient is not whole");
  EXPECT_EQ(refused([](P&) {}), "accepted");
}

// Row parameters give floats their usual values only. A float of an engine's call may have any
// value, and is then set in the row as it is.
TEST(OpTable, AnyNumberOfACallGoesIntoItsRow) {
  SampleCall call(row_of(3, 4, 1, 1));
  call.params().eps = 0.25F;
  call.params().factor = 0.25F;
  const Row row = call.solved();
  EXPECT_EQ(row.real("eps", 0), 0.25F);
  EXPECT_EQ(row.real("factor", 0), 0.25F);
}

TEST(OpTable, RowsThatOverlapAreRefused) {
  const Row row = row_of(3, 4, -1, 1);
  EXPECT_EQ(refusal<std::logic_error>([&] { SampleCall call(row); }),
            "x: strides [4, 1] are too small for the shape [3, 8]");
}

struct SmallParams {
  const float* x;
  std::int32_t rows, columns;
  plumb_stream stream;
};
using S = SmallParams;

template <class F>
std::string check(const F& members) {
  OpTable table(sizeof(S));
  TablePart<S> t(table);
  members(t);
  return refusal<std::logic_error>([&] { table.check(); });
}

TEST(OpTable, AWrongTableIsRefused) {
  const auto right = [](auto& t) {
    t.scalar("rows", &S::rows);
    t.scalar("columns", &S::columns);
  };
  EXPECT_EQ(check([&](auto& t) {
              right(t);
              t.input("x", &S::x, {1});
            }),
            "accepted");
  EXPECT_EQ(check([&](auto& t) { right(t); }), "no line for the member between the start and rows");
  EXPECT_EQ(check([&](auto& t) {
              t.scalar("rows", &S::rows);
              t.input("x", &S::x, {1});
            }),
            "3 lines for 4 members");
  EXPECT_EQ(check([&](auto& t) {
              right(t);
              t.scalar("again", &S::rows);
              t.input("x", &S::x, {1});
            }),
            "rows and again are one member");
  EXPECT_EQ(check([&](auto& t) {
              right(t);
              t.input("x", &S::x, {1}).strides({4, 1});
            }),
            "x: 2 strides for 1 dimensions");
  EXPECT_EQ(check([&](auto& t) {
              right(t);
              t.input("x", &S::x, {1});
              t.input("x", &S::x, {2});
            }),
            "two tensors are called x");
}

TEST(Formula, GivesItsText) {
  const Formula a = parameter("a"), b = parameter("b");
  EXPECT_EQ((a * (b + 1) - 2).text(), "a * (b + 1) - 2");
  EXPECT_EQ(div_up(a + 1, 4).text(), "ceil((a + 1) / 4)");
  EXPECT_EQ(both(!word_is("form", "ragged"), a).text(), "(!(form == \"ragged\")) and a");
  EXPECT_EQ((greatest(a, b) + unless_negative(b, a)).text(), "max(a, b) + b");
  EXPECT_EQ(in_call(least(a, b), limit(&EngineLimits::requests, "requests")).text(), "requests");
}

TEST(Formula, ADivisorOfZeroIsRefused) {
  const Row row = row_of(3, 0, 0, 0);
  const FormulaValues values{.row = &row};
  const auto refused = [&](const Formula& formula) {
    return refusal<std::invalid_argument>([&] { formula.value(values); });
  };
  EXPECT_EQ(div_up(parameter("rows"), 2).value(values), 2);
  EXPECT_EQ(refused(div_up(parameter("rows"), parameter("gap"))), "a divisor is 0");
  EXPECT_EQ(refused(parameter("rows") / parameter("gap")), "a quotient is not whole");
}

TEST(Formula, OfTwoUnknownsIsNotSolved) {
  Row row = row_of(0, 0, 0, 0);
  RowOfCall call{{.row = &row}, row};
  EXPECT_EQ(
      refusal<std::logic_error>([&] { (parameter("rows") + parameter("gap")).solve(5, call); }),
      "rows + gap has two unknown parameters");
  call.set("gap", 2);
  (parameter("rows") + parameter("gap")).solve(5, call);
  EXPECT_EQ(row.integer("rows"), 3);
}

TEST(Formula, OfASizeOrTheUsualOneIsSolvedForTheSize) {
  Row row = row_of(-1, 4, 1, 1);
  const Formula usual = unless_negative(parameter("rows"), parameter("pairs") * 2);
  EXPECT_EQ(usual.value({.row = &row}), 8);
  RowOfCall call{{.row = &row}, row};
  usual.solve(5, call);
  EXPECT_EQ(row.integer("rows"), 5);
  greatest(parameter("gap"), parameter("rows")).solve(7, call);
  EXPECT_EQ(row.integer("gap"), 7);
}

struct PaddingParams {
  const void* x;
  std::int64_t rows;
  std::uint32_t bits;
  plumb_stream stream;
};

Formula padding_members(TablePart<PaddingParams>& t) {
  const Formula rows = t.scalar("rows", &PaddingParams::rows);
  t.word("bits", &PaddingParams::bits, {"dtype", {{"f32", 0xff800000}, {"u8", 0}}});
  t.input("x", &PaddingParams::x, {rows})
      .elements(computed("dtype", [](const FormulaValues& values) {
        const bool bytes = values.row->word("dtype") == "u8";
        return static_cast<std::int64_t>(bytes ? Dtype::u8 : Dtype::f32);
      }));
  return rows;
}

TEST(OpTable, AWordGivesBitsAndTheTypeOfElements) {
  const OpTable& table = table_of<padding_members>();
  Row row = row_of(2, 0, 0, 0);
  PaddingParams p{};
  table.set_scalars(row, nullptr, &p);
  EXPECT_EQ(p.bits, 0xff800000);
  EXPECT_EQ(table.layout({.params = &p, .row = &row})[0].spec.dtype, Dtype::f32);
  row.words["dtype"] = "u8";
  table.set_scalars(row, nullptr, &p);
  EXPECT_EQ(p.bits, 0);
  EXPECT_EQ(table.layout({.params = &p, .row = &row})[0].spec.dtype, Dtype::u8);
}

TEST(OpTable, ATensorWithoutElementsMayHaveNoAddress) {
  const OpTable& table = table_of<padding_members>();
  const auto solved = [&](std::int64_t rows) {
    const PaddingParams p{.x = nullptr, .rows = rows, .bits = 0, .stream = nullptr};
    Row row = row_of(0, 0, 0, 0);
    return refusal<std::invalid_argument>([&] { table.solve(&p, {}, row); });
  };
  EXPECT_EQ(solved(0), "accepted");
  EXPECT_EQ(solved(1), "sample: the call has no x, the row that describes it has one");
}

}  // namespace op_table_test
}  // namespace plumb::cases
