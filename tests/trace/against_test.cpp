// SPDX-License-Identifier: Apache-2.0
//
// Tests plumb judge A --against B, which compares the calls and rows of two traces that have equal
// inputs.
#include <nlohmann/json.hpp>

#include "cases/studies/allowed_difference.h"
#include "tests/support/command_line.h"
#include "tests/trace/example_rows.h"

namespace plumb::tests {
namespace against_test {

class Against : public CommandLine {
 protected:
  void write_to(const std::string& trace, const std::vector<ExampleStep>& steps) const {
    std::filesystem::remove_all(folder_ / trace);
    std::filesystem::create_directories(folder_ / trace / "rank-0");
    for (std::size_t i = 0; i < steps.size(); ++i) {
      steps[i].write(path(trace + "/rank-0/step-00000" + std::to_string(i) + ".h5"));
    }
  }
  static ExampleStep one_step(const std::vector<int>& requests, std::int64_t number = 0,
                              int changed = -1, int steps = 1) {
    ExampleStep step(number);
    norm_of_rows(step, requests, 0);
    norm_of_rows(step, requests, 1, changed, steps);
    return step;
  }

  Finished compared(const std::vector<ExampleStep>& a, const std::vector<ExampleStep>& b) const {
    write_to("a", a);
    write_to("b", b);
    return run({"judge", path("a"), "--against", path("b"), "--json", path("j.json")});
  }
  void expect_nothing_matches(const ExampleStep& a, const ExampleStep& b) const {
    const Finished finished = compared({a}, {b});
    EXPECT_EQ(finished.code, 2) << finished.out;
    EXPECT_NE(finished.err.find("no call or row of the two traces read the same bits\n"),
              std::string::npos);
  }
  nlohmann::json report() const { return nlohmann::json::parse(contents(path("j.json"))); }
};

TEST_F(Against, TheSameBitsEndWithZero) {
  const Finished finished = compared({one_step({1, 2, 3})}, {one_step({1, 2, 3})});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.out.find("FIRST"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("2 calls and 0 rows matched: 2 the same, 0 within, 0 beyond, 0 not "
                              "judged\n"),
            std::string::npos)
      << finished.out;
}

TEST_F(Against, ARoundingIsWithin) {
  const Finished finished = compared({one_step({1, 2, 3})}, {one_step({1, 2, 3}, 0, 1)});
  EXPECT_EQ(finished.code, 0) << finished.out;
  EXPECT_EQ(finished.out.find("FIRST DIFFERENT BITS  step 0, call 1 of 2, layer 1: rms_norm "
                              "(Norm.forward), eager\n      out: 1 of 192 elements differ, in 1 of "
                              "3 rows; the first at [1, 5]: "),
            0u)
      << finished.out;
  EXPECT_NE(finished.out.find("within the largest difference of two right results: 0."),
            std::string::npos);
  const auto json = report();
  EXPECT_EQ(json["first_beyond"], nullptr);
  EXPECT_EQ(json["first_different"]["outcome"], "within");
  EXPECT_GT(json["first_different"]["tensors"][0]["of_bound"], 0.01);
  EXPECT_EQ(json["ops"]["rms_norm"]["within"], 1);
}

TEST_F(Against, AWrongResultIsBeyondAndNamed) {
  ExampleStep a = one_step({1, 2, 3}, 0, 1), b = one_step({1, 2, 3});
  norm_of_rows(a, {1, 2, 3}, 2, 0, 40);
  norm_of_rows(b, {1, 2, 3}, 2);
  const Finished finished = compared({a}, {b});
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(finished.out.find("FIRST DIFFERENT BITS  step 0, call 1 of 3"), 0u) << finished.out;
  EXPECT_NE(
      finished.out.find(
          "FIRST DIFFERENCE THAT TWO RIGHT RESULTS CANNOT HAVE  step 0, call 2 of 3, layer 2: "
          "rms_norm"),
      std::string::npos)
      << finished.out;
  EXPECT_NE(finished.out.find("      A is wrong: out: "), std::string::npos);
  EXPECT_EQ(finished.out.find("B is wrong"), std::string::npos);
  EXPECT_EQ(report()["first_beyond"]["a"], "0/0/2");
}

// In trace A the requests 1, 2, 3 are one batch. In trace B they are in two batches, of five and of
// two rows, in steps 0 and 1.
TEST_F(Against, RowsMatchWhereverTheyStand) {
  const std::vector<ExampleStep> a{one_step({1, 2, 3}, 0)};
  const std::vector<ExampleStep> b{one_step({9, 3, 8, 7, 1}, 0), one_step({2, 6}, 1)};
  const Finished finished = compared(a, b);
  EXPECT_EQ(finished.code, 0) << finished.err << finished.out;
  auto json = report();
  EXPECT_EQ(json["total"]["calls"], 0);
  EXPECT_EQ(json["total"]["rows"], 6);
  EXPECT_EQ(json["total"]["same"], 6);
  const std::vector<ExampleStep> changed{one_step({9, 3, 8, 7, 1}, 0), one_step({2, 6}, 1, 0, 50)};
  const Finished found = compared(a, changed);
  EXPECT_EQ(found.code, 1);
  EXPECT_NE(found.out.find("layer 1: rms_norm (Norm.forward), eager\n      row 1, in B row 0 of "
                           "call 0/1/1\n      out: 1 of 64 elements differ, in 1 of 1 rows; the "
                           "first at [1, 5] and [0, 5]: "),
            std::string::npos)
      << found.out;
  EXPECT_NE(found.out.find("B is wrong: out: "), std::string::npos);
  json = report();
  EXPECT_EQ(json["total"]["beyond"], 1);
  EXPECT_EQ(json["total"]["same"], 5);
  EXPECT_EQ(json["different"][0]["rows"], (nlohmann::json{{1, 0}}));
}

// The order of selected indices is free: the same set in another order is no difference.
TEST_F(Against, AnotherOrderOfIndicesIsWithin) {
  const auto select = [](ExampleStep& step, const std::vector<std::int32_t>& indices) {
    const std::vector<float> logits{1, 7, 3, 5, 2, 6, 4, 0};
    step.json["calls"].push_back(
        {{"op", "top_k_per_row_decode"},
         {"scalars", {{"k", 3}}},
         {"before",
          {{"logits", step.tensor("f32", {1, 8}, logits)},
           {"seq_lens", step.tensor("i32", {1, 1}, std::vector<std::int32_t>{8})}}},
         {"after", {{"indices", step.tensor("i32", {1, 3}, indices)}}}});
  };
  ExampleStep a, b, c;
  select(a, {1, 5, 3});
  select(b, {3, 1, 5});
  select(c, {3, 1, 6});
  const Finished within = compared({a}, {b});
  EXPECT_EQ(within.code, 0) << within.out << within.err;
  EXPECT_EQ(report()["total"]["within"], 1);
  EXPECT_NE(within.out.find(
                "the difference is allowed: the op does not define these elements or their order"),
            std::string::npos)
      << within.out;
  const Finished beyond = compared({a}, {c});
  EXPECT_EQ(beyond.code, 1);
  EXPECT_NE(beyond.out.find("B is wrong: indices: "), std::string::npos) << beyond.out;
}

// A wrong row of trace B whose inputs equal those of no row of A is no difference of the two
// traces.
TEST_F(Against, OnlyMatchedRowsCount) {
  const std::vector<ExampleStep> b{one_step({9, 3, 8, 7, 1}, 0, 0, 50)};
  EXPECT_EQ(compared({one_step({1, 2, 3})}, b).code, 0);
  EXPECT_EQ(report()["total"]["same"], 4);
}

// All rows depend on the weights, so rows match only under equal weights and numbers.
TEST_F(Against, RowsOfOtherWeightsOrNumbersDoNotMatch) {
  ExampleStep a, weights, eps;
  norm_of_rows(a, {1, 2, 3});
  norm_of_rows(weights, {3, 2})["before"]["weight"] =
      weights.tensor("bf16", {kRowColumns}, std::vector<std::uint16_t>(kRowColumns, 0x3f80));
  expect_nothing_matches(a, weights);
  norm_of_rows(eps, {3, 2})["scalars"]["eps"] = 1e-5;
  expect_nothing_matches(a, eps);
}

TEST_F(Against, WholeCallsMatchAtOtherSteps) {
  const Finished finished = compared({one_step({1, 2}, 0), one_step({3, 4}, 1)},
                                     {one_step({3, 4}, 0), one_step({5, 6}, 1)});
  EXPECT_EQ(finished.code, 0) << finished.err;
  const auto json = report();
  EXPECT_EQ(json["total"]["calls"], 2);
  EXPECT_EQ(json["total"]["carried"], 0) << "both calls of a place have to be left";
  EXPECT_EQ(json["total"]["only_a"], 2);
  EXPECT_EQ(json["total"]["only_b"], 2);
}

TEST_F(Against, CallsWithOtherInputsAreCarried) {
  ExampleStep a = one_step({1, 2}), b = one_step({1, 2});
  a.unknown({1, 2}, {3, 4});
  b.unknown({1, 5}, {3, 4});
  const Finished finished = compared({a}, {b});
  EXPECT_EQ(finished.code, 0);
  EXPECT_NE(finished.out.find("carried: 1 calls read other bits than the call at the same place in "
                              "B. The first is step 0, call 2 of 3: aten::softmax, eager: in\n"),
            std::string::npos)
      << finished.out;
}

TEST_F(Against, OfUnknownOpsItSaysThatItCannotSay) {
  ExampleStep a = one_step({1, 2}), b = one_step({1, 2});
  a.unknown({1, 2}, {3, 4});
  b.unknown({1, 2}, {3, 5});
  const Finished finished = compared({a}, {b});
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(finished.err.find("plumb: "), 0u);
  EXPECT_NE(finished.err.find("1 calls wrote other bits and could not be judged\n"),
            std::string::npos)
      << finished.err;
  EXPECT_NE(
      finished.out.find("out: 1 of 2 elements differ, in 1 of 1 rows; the first at [1]: 4 and "
                        "5\n      not judged: plumb has no such op\n"),
      std::string::npos)
      << finished.out;
  norm_of_rows(a, {1, 2}, 2, 0, 50);
  norm_of_rows(b, {1, 2}, 2);
  EXPECT_EQ(compared({a}, {b}).code, 1) << "something else is wrong";
}

TEST_F(Against, WhatWasNotRecordedDoesNotMatch) {
  ExampleStep a = one_step({1, 2}), b = one_step({1, 2});
  a.json["calls"][0]["before"]["x"].erase("data");
  a.json["calls"][1]["after"]["out"].erase("data");
  expect_nothing_matches(a, b);
  EXPECT_EQ(report()["total"]["carried"], 2);
}

TEST_F(Against, WhatCannotBeComparedIsOneLine) {
  write_to("a", {one_step({1, 2})});
  write_to("b", {one_step({1, 2})});
  const Words words{"judge", path("a"), "--against"};
  const auto with = [&](std::initializer_list<std::string> more) {
    Words all = words;
    all.insert(all.end(), more);
    return all;
  };
  expect_refused(with({path("nothing")}), "nothing: No such file or directory");
  expect_refused(with({path("b"), "--call", "0/0/0"}), "leave out --call");
  expect_refused(with({path("b"), "--follow"}), "leave out --follow");
  expect_refused(with({path("b"), "--rows", "2"}), "leave out --rows");
  expect_refused(with({path("b"), "--junit", path("j.xml")}), "leave out --junit");
  expect_refused(with({path("b"), "--html", path("j.html")}), "leave out --html");
  expect_refused(with({path("b"), "--json", path("no/where.json")}), "there is no folder");
  const std::string step = path("b/rank-0/step-000000.h5");
  const std::string whole = contents(step);
  std::ofstream(step, std::ios::binary) << whole.substr(0, whole.size() / 2);
  expect_refused(with({path("b")}), "step-000000.h5");
}

TEST(AllowedDifference, IndependentErrorsAddUpAsVariances) {
  reference::Estimate estimate;
  estimate.output = reference::Format::f32;
  estimate.resize(1, 1);
  estimate.value[0] = 1;
  estimate.sigma[0] = 0.01;
  estimate.worst[0] = 1;
  // roundings to f32 add less than 1e-6
  EXPECT_NEAR(cases::allowed_difference(estimate, 0, estimate, 0), 6 * 0.01 * std::sqrt(2.0), 1e-6);
  estimate.worst[0] = 0.02;
  EXPECT_NEAR(cases::allowed_difference(estimate, 0, estimate, 0), 0.04, 1e-6);
  estimate.structured = true;
  estimate.worst[0] = 1;
  EXPECT_NEAR(cases::allowed_difference(estimate, 0, estimate, 0), 2, 1e-6);
  EXPECT_EQ(cases::share_of_allowed(1, 1, 0), 0);
  EXPECT_EQ(cases::share_of_allowed(1, NAN, 1), INFINITY);
  EXPECT_EQ(cases::share_of_allowed(1, 2, 0.5), 2);
}

}  // namespace against_test
}  // namespace plumb::tests
