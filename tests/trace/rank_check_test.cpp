// SPDX-License-Identifier: Apache-2.0
//
// Tests what plumb judge compares between ranks: replicated tensors, and results of collectives.
#include "trace/ranks/rank_check.h"

#include <deque>
#include <nlohmann/json.hpp>

#include "tests/support/command_line.h"
#include "tests/trace/example_trace.h"

namespace plumb::tests {
namespace rank_check_test {

using trace::RankReport;
using Json = ExampleStep::Json;
using Floats = std::vector<float>;
using Shape = std::vector<std::int64_t>;

class RankCheck : public CommandLine {
 protected:
  std::string step_path(std::int64_t rank) const {
    const std::string folder = "trace/rank-" + std::to_string(rank);
    std::filesystem::create_directories(folder_ / folder);
    return path(folder + "/step-000000.h5");
  }

  RankReport checked(const std::vector<ExampleStep>& ranks) const {
    std::deque<trace::StepBytes> bytes;
    std::deque<trace::TraceStep> steps;
    std::vector<trace::RankStep> there;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const std::string path = step_path(static_cast<std::int64_t>(i));
      ranks[i].write(path);
      const trace::StepBytes& read = bytes.emplace_back(path);
      there.push_back({steps.emplace_back(trace::parse_step(read.text(), path)), read});
    }
    return check_ranks(there);
  }

  static std::vector<ExampleStep> ranks(std::int64_t count) {
    std::vector<ExampleStep> all;
    for (std::int64_t rank = 0; rank < count; ++rank) all.emplace_back(0, rank);
    return all;
  }
  // A call of one rank whose tensor x is replicated.
  static Json& hidden(ExampleStep& step, const Floats& x) {
    Json& call = step.unknown({0}, x);
    call["after"] = {{"x", call["after"]["out"]}};
    call["replicated"] = {"x"};
    return call;
  }
  template <class T>
  static Json& collective(ExampleStep& step, const std::string& what, const std::string& dtype,
                          const Shape& in, const std::vector<T>& given, const Shape& out,
                          const std::vector<T>& got) {
    Json& call = step.unknown({0}, {0});
    call["name"] = what;
    call["collective"] = what;
    call["before"] = {{"in", step.tensor(dtype, in, given)}};
    call["after"] = {{"out", step.tensor(dtype, out, got)}};
    return call;
  }
};

TEST_F(RankCheck, ReplicatedTensorsAreEqual) {
  auto two = ranks(2);
  hidden(two[0], {1, 2});
  hidden(two[0], {3, 4});
  hidden(two[1], {1, 2});
  hidden(two[1], {3, 4});
  RankReport report = checked(two);
  EXPECT_EQ(report.checked, 4);
  EXPECT_EQ(report.wrong, 0);
  two[1].json["calls"].erase(1);
  hidden(two[1], {3, 5});
  report = checked(two);
  ASSERT_EQ(report.wrong, 1);
  EXPECT_EQ(report.found[0].call.rank, 1);
  EXPECT_EQ(report.found[0].call.index, 1);
  EXPECT_EQ(report.found[0].other, 0);
  EXPECT_EQ(report.found[0].first, "[1]: 5 and 4");
  EXPECT_EQ(report.found[0].elements, 1);
  EXPECT_EQ(report.found[0].of_elements, 2);
}

TEST_F(RankCheck, OfThreeRanksTheOddOneIsNamed) {
  auto three = ranks(3);
  hidden(three[0], {9, 2});
  hidden(three[1], {1, 2});
  hidden(three[2], {1, 2});
  const RankReport report = checked(three);
  ASSERT_EQ(report.wrong, 1);
  EXPECT_EQ(report.found[0].call.rank, 0);
  EXPECT_EQ(report.found[0].other, 1);
}

TEST_F(RankCheck, AnotherShapeIsADifference) {
  auto two = ranks(2);
  hidden(two[0], {1, 2});
  hidden(two[1], {1, 2, 3});
  const RankReport report = checked(two);
  ASSERT_EQ(report.wrong, 1);
  EXPECT_EQ(report.found[0].first, "f32 of [3], and f32 of [2]");
}

// What cannot be compared is counted with its reason, and is not right.
TEST_F(RankCheck, WhatIsNotComparable) {
  const auto reason = [&](const auto& change) {
    auto two = ranks(2);
    for (ExampleStep& rank : two) hidden(rank, {1, 2});
    change(two[1].json["calls"][0]);
    const RankReport report = checked(two);
    EXPECT_EQ(report.wrong, 0);
    return report.not_compared.empty() ? "" : report.not_compared.begin()->first;
  };
  EXPECT_EQ(reason([](Json&) {}), "");
  EXPECT_EQ(reason([](Json& call) { call.erase("replicated"); }), "rank 1 has no such call");
  EXPECT_EQ(reason([](Json& call) { call["layer"] = 3; }), "rank 0 has no such call");
  EXPECT_EQ(reason([](Json& call) { call["rows"] = {0}; }), "the ranks stored other rows");
  EXPECT_EQ(reason([](Json& call) { call["after"]["x"].erase("data"); }),
            "the values of x were not recorded");
  EXPECT_EQ(reason([](Json& call) { call.erase("after"); }), "not all ranks have x");
  EXPECT_EQ(reason([](Json& call) { call["after"]["x"]["blocks"] = {0, 1}; }),
            "the ranks stored other blocks");
  auto two = ranks(2);
  for (ExampleStep& rank : two) hidden(rank, {1, 2})["replicated"] = {"y"};
  EXPECT_EQ(checked(two).not_compared.begin()->first, "the call has no tensor y");
  for (ExampleStep& rank : two) rank.json["calls"][0]["group"] = {0, 2};
  EXPECT_EQ(checked(two).not_compared.begin()->first, "rank 2 has no such step");
}

TEST_F(RankCheck, ASumMayBeMadeInAnyOrder) {
  const float small = 0x1p-25f, unit = 0x1p-24f;
  const auto wrong = [&](float first, float second) {
    auto three = ranks(3);
    const float parts[] = {1, small, -small * 4}, got[] = {first, second, 1 - unit};
    for (int i = 0; i < 3; ++i) {
      collective<float>(three[i], "all_reduce", "f32", {1}, {parts[i]}, {1}, {got[i]});
    }
    const RankReport report = checked(three);
    EXPECT_EQ(report.checked, 3);
    return report.wrong;
  };
  // Rounding after each addition allows one unit on both sides of the exact sum 1 - 1.5 units.
  EXPECT_EQ(wrong(1 - 2 * unit, 1 - unit), 0);
  EXPECT_EQ(wrong(1 - 2 * unit, 1), 0);
  EXPECT_EQ(wrong(1 - 2 * unit, 1 + 2 * unit), 1);
  EXPECT_EQ(wrong(1 - 5 * unit, 1 + 2 * unit), 2);
}

TEST_F(RankCheck, ASumOfTwoPartsIsRoundedOnce) {
  const auto report_of = [&](float got) {
    auto two = ranks(2);
    const auto bf16 = [](float value) { return std::vector{reference::encode_bf16(value)}; };
    collective<std::uint16_t>(two[0], "all_reduce", "bf16", {1}, bf16(1), {1}, bf16(1.5f));
    collective<std::uint16_t>(two[1], "all_reduce", "bf16", {1}, bf16(0.5f), {1}, bf16(got));
    return checked(two);
  };
  EXPECT_EQ(report_of(1.5f).wrong, 0);
  const RankReport report = report_of(1.5078125f);  // the next number above
  ASSERT_EQ(report.wrong, 1);
  EXPECT_EQ(report.found[0].call.rank, 1);
  EXPECT_EQ(report.found[0].collective, "all_reduce");
  EXPECT_EQ(report.found[0].first, "[0]: 1.5078125, the sum is 1.5 +- 0.0059");
}

TEST_F(RankCheck, NotANumberAndInfinityAreInTheSumToo) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto wrong = [&](float given, float got) {
    auto two = ranks(2);
    collective<float>(two[0], "all_reduce", "f32", {1}, {given}, {1}, {got});
    collective<float>(two[1], "all_reduce", "f32", {1}, {1}, {1}, {got});
    return checked(two).wrong;
  };
  EXPECT_EQ(wrong(nan, nan), 0);
  EXPECT_EQ(wrong(nan, 1), 2);
  EXPECT_EQ(wrong(infinity, infinity), 0);
  EXPECT_EQ(wrong(infinity, nan), 2);
  EXPECT_EQ(wrong(1, nan), 2);
}

TEST_F(RankCheck, OnlySumsThatMayOverflowAreInfinite) {
  const float large = std::numeric_limits<float>::max();
  const float infinity = std::numeric_limits<float>::infinity();
  const auto wrong = [&](const Floats& parts, float got) {
    auto some = ranks(std::ssize(parts));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      collective<float>(some[i], "all_reduce", "f32", {1}, {parts[i]}, {1}, {got});
    }
    return checked(some).wrong;
  };
  EXPECT_EQ(wrong({large, large}, infinity), 0);
  EXPECT_EQ(wrong({large, large}, -infinity), 2);
  EXPECT_EQ(wrong({large, large}, large), 2);
  EXPECT_EQ(wrong({large, -large}, 0), 0);
  EXPECT_EQ(wrong({large, -large}, infinity), 2) << "no sum on the way";
  EXPECT_EQ(wrong({large, large, -large}, infinity), 0) << "the sum of the first two";
  EXPECT_EQ(wrong({large, large, -large}, large), 0);
  EXPECT_EQ(wrong({large, large, -large}, 1), 3);
}

TEST_F(RankCheck, ATensorThatCannotBeComparedHidesNoOther) {
  auto two = ranks(2);
  hidden(two[0], {1, 2})["replicated"] = {"y", "x"};
  hidden(two[1], {1, 3})["replicated"] = {"y", "x"};
  const RankReport report = checked(two);
  EXPECT_EQ(report.not_compared.begin()->first, "the call has no tensor y");
  EXPECT_EQ(report.wrong, 1);
}

TEST_F(RankCheck, PiecesOfAScatteredSumAndOfAGatheredTensor) {
  // Two rows of three columns; rank 0 has columns 0 and 1, rank 1 has column 2.
  auto two = ranks(2);
  const Floats a{1, 2, 3, 4, 5, 6}, b{10, 20, 30, 40, 50, 60};
  collective<float>(two[0], "reduce_scatter", "f32", {2, 3}, a, {2, 2}, {11, 22, 44, 55});
  collective<float>(two[1], "reduce_scatter", "f32", {2, 3}, b, {2, 1}, {33, 67});
  const Floats gathered{1, 2, 9, 3, 4, 8};
  collective<float>(two[0], "all_gather", "f32", {2, 2}, {1, 2, 3, 4}, {2, 3}, gathered);
  collective<float>(two[1], "all_gather", "f32", {2, 1}, {9, 7}, {2, 3}, gathered);
  const RankReport report = checked(two);
  EXPECT_EQ(report.checked, 4);
  EXPECT_TRUE(report.not_compared.empty());
  ASSERT_EQ(report.wrong, 3);
  EXPECT_EQ(report.found[0].call.rank, 1);
  EXPECT_EQ(report.found[0].first, "[1, 0]: 67, the sum is 66 +- 3.9e-06");
  EXPECT_EQ(report.found[1].first, "[1, 2]: 8, rank 1 of the group gave 7");
}

TEST_F(RankCheck, CollectivesThatCannotBeCompared) {
  const auto reason = [&](const std::string& what, const std::string& dtype, const Shape& out) {
    auto two = ranks(2);
    for (ExampleStep& rank : two) {
      collective<std::int32_t>(rank, what, dtype, {2}, {1, 2}, out,
                               std::vector<std::int32_t>(static_cast<std::size_t>(out[0]), 3));
    }
    const RankReport report = checked(two);
    EXPECT_EQ(report.checked, 0);
    return report.not_compared.empty() ? "" : report.not_compared.begin()->first;
  };
  EXPECT_EQ(reason("broadcast", "i32", {2}), "plumb has no such collective");
  EXPECT_EQ(reason("all_reduce", "u32", {2}), "sums of u32");
  EXPECT_EQ(reason("all_reduce", "i32", {3}), "the sum has another shape");
  EXPECT_EQ(reason("all_gather", "i32", {5}),
            "the pieces of the ranks do not make the whole along one dimension");
}

TEST_F(RankCheck, TheCommandFailsAndNamesTheCall) {
  auto two = ranks(2);
  for (ExampleStep& rank : two) {
    rank.norm();
    collective<float>(rank, "all_reduce", "f32", {2}, {1, 2}, {2}, {2, 4})["layer"] = 1;
    rank.write(step_path(rank.json["rank"]));
  }
  const Finished right = run({"judge", path("trace")});
  EXPECT_EQ(right.code, 0) << right.err;
  EXPECT_NE(right.out.find("ranks: 2 tensors were compared with other ranks, all right\n"),
            std::string::npos)
      << right.out;
  two[1].json["calls"].erase(1);
  collective<float>(two[1], "all_reduce", "f32", {2}, {1, 2}, {2}, {1, 2})["layer"] = 1;
  two[1].write(step_path(1));
  const Finished wrong =
      run({"judge", path("trace"), "--json", path("j.json"), "--junit", path("j.xml")});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_EQ(
      wrong.out.find("FIRST DIFFERENCE BETWEEN RANKS  rank 1, step 0, call 1 of 2, layer 1: "
                     "all_reduce, eager\n      out of rank 1 is not the all_reduce of the "
                     "parts: 2 of 2 elements, the first at [0]: 1, the sum is 2 +- 1.2e-07\n"),
      0u)
      << wrong.out;
  const auto json = nlohmann::json::parse(contents(path("j.json")));
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["ranks"]["checked"], 2);
  EXPECT_EQ(json["ranks"]["wrong"], 1);
  EXPECT_EQ(json["ranks"]["found"][0]["call"], "1/0/1");
  EXPECT_NE(
      contents(path("j.xml")).find("<testcase name=\"ranks\" classname=\"trace\">\n      <failure"),
      std::string::npos);
}

TEST_F(RankCheck, WhereNothingWasComparedNothingIsRight) {
  auto two = ranks(2);
  for (ExampleStep& rank : two) {
    rank.norm();
    hidden(rank, {1, 2})["replicated"] = {"y"};
    rank.write(step_path(rank.json["rank"]));
  }
  const Finished judged = run({"judge", path("trace")});
  EXPECT_NE(judged.out.find("ranks: nothing was compared with other ranks\n"
                            "       1 not compared: the call has no tensor y\n"),
            std::string::npos)
      << judged.out;
}

// A trace of collectives alone has a verdict, and one of a single rank has none.
TEST_F(RankCheck, ComparedRanksAreAVerdict) {
  auto two = ranks(2);
  for (ExampleStep& rank : two) {
    collective<float>(rank, "all_reduce", "f32", {1}, {1}, {1}, {2});
    rank.write(step_path(rank.json["rank"]));
  }
  EXPECT_EQ(run({"judge", path("trace")}).code, 0);
  EXPECT_EQ(run({"judge", path("trace/rank-0")}).code, 2);
}

TEST_F(RankCheck, MembersOfAnotherFormAreRefused) {
  ExampleStep step;
  step.norm();
  const auto refused = [&](const char* member, Json value) {
    ExampleStep changed = step;
    changed.json["calls"][0][member] = std::move(value);
    changed.write(step_path(0));
    return run({"judge", path("trace")}).err;
  };
  EXPECT_NE(refused("group", {0, 0}).find("calls[0].group: names a rank twice"), std::string::npos);
  EXPECT_NE(refused("group", {-1}).find("calls[0].group[0]: is -1"), std::string::npos);
  EXPECT_NE(refused("replicated", "x").find("calls[0].replicated: not a list"), std::string::npos);
  EXPECT_NE(refused("collective", 3).find("calls[0].collective: not a text"), std::string::npos);
  EXPECT_NE(refused("rows", {-3}).find("calls[0].rows[0]: is -3"), std::string::npos);
}

}  // namespace rank_check_test
}  // namespace plumb::tests
