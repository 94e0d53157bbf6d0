// SPDX-License-Identifier: Apache-2.0
//
// What the oracle derives from a run of plumb: verdict, reason, signature, path. With the built
// plumb and right and wrong plug-ins, and with reports written by hand.
#include "bisect/search/oracle.h"

#include <gtest/gtest.h>

#include "bisect/search/signature.h"

namespace plumb::bisect {
namespace oracle_test {

using nlohmann::json;

std::string plugin(const std::string& name) {
  return std::string(PLUMB_TEST_PLUGINS) + "/launches_" + name + ".so";
}

Answer ask(const Question& question, double timeout = 300) {
  return Oracle(PLUMB_BINARY, timeout).ask(question);
}

Question norm(const std::string& library = "", const std::string& row = "hidden_1") {
  Question question;
  question.which = "rms_norm/" + row + "/eager";
  question.platform = "sim-sm90";
  if (!library.empty()) question.plugin = plugin(library);
  return question;
}

TEST(Oracle, ARightKernelIsGoodAndWhatRanIsTold) {
  const Answer answer = ask(norm());
  EXPECT_EQ(answer.verdict, Verdict::good) << answer.reason;
  EXPECT_EQ(answer.signature, "");
  ASSERT_EQ(answer.paths.size(), 1u);
  EXPECT_EQ(answer.paths[0].which, "rms_norm/hidden_1/eager");
  EXPECT_EQ(answer.paths[0].outcome, "passed");
  EXPECT_GT(answer.paths[0].launches, 0);
  EXPECT_TRUE(answer.failed.is_null());
}

TEST(Oracle, AWrongKernelIsBadWithOneSignatureWhateverTheNumbers) {
  const Answer answer = ask(norm("ignores_weight", "one_token"));
  EXPECT_EQ(answer.verdict, Verdict::bad) << answer.reason;
  EXPECT_EQ(answer.signature, "rms_norm/one_token/eager sim-sm90 out: wrong values");
  EXPECT_EQ(answer.failed.at("case"), "rms_norm/one_token/eager");
  Question other = norm("ignores_weight", "one_token");
  other.seed = "5";
  other.settings = {"tokens=7"};
  EXPECT_EQ(ask(other).signature, answer.signature);
  EXPECT_NE(ask(norm("writes_behind", "one_token")).kind, answer.kind);
}

TEST(Oracle, CrashesAndHangsAreBad) {
  EXPECT_EQ(ask(norm("crash_in_launcher")).kind, "crash: its process ended with signal 11");
  const Answer hang = ask(norm("hang_in_kernel"), 1);
  EXPECT_EQ(hang.verdict, Verdict::bad);
  EXPECT_EQ(hang.kind, "timeout");
}

TEST(Oracle, WhatSaysNothingAboutTheKernelIsNoVerdict) {
  Question absent = norm();
  absent.which = "rms_norm/absent/eager";
  const Answer lacking = ask(absent);
  EXPECT_EQ(lacking.verdict, Verdict::cannot_say);
  EXPECT_FALSE(lacking.usage);
  EXPECT_NE(lacking.reason.find("no case matches"), std::string::npos) << lacking.reason;
  Question skipped = norm("right");
  skipped.which = "hc_head/*/eager";
  EXPECT_NE(ask(skipped).reason.find("skipped: launches lacks the op"), std::string::npos);
  Question refused = norm();
  refused.settings = {"tokns=3"};
  const Answer usage = ask(refused);
  EXPECT_EQ(usage.verdict, Verdict::cannot_say);
  EXPECT_TRUE(usage.usage);
  EXPECT_NE(usage.reason.find("no parameter \"tokns\""), std::string::npos) << usage.reason;
  Question unloadable = norm();
  unloadable.plugin = "/no/such/plugin.so";
  EXPECT_EQ(ask(unloadable).verdict, Verdict::cannot_say);
}

TEST(Oracle, AnExitCodeWithoutItsReportIsNoVerdict) {
  Ended ended;
  EXPECT_EQ(interpret(ended, nullptr).verdict, Verdict::cannot_say) << "nothing ran";
  ended.code = 1;
  EXPECT_EQ(interpret(ended, nullptr).verdict, Verdict::cannot_say)
      << "true and false are no plumb";
  EXPECT_EQ(interpret(ended, nullptr).reason, "ended with exit code 1");
  ended.code = 0;
  ended.signal = 9;
  EXPECT_EQ(interpret(ended, nullptr).verdict, Verdict::cannot_say) << "somebody ended it";
  ended.signal = 11;
  EXPECT_EQ(interpret(ended, nullptr).verdict, Verdict::bad);
  EXPECT_EQ(interpret(ended, nullptr).kind, "plumb ended with signal 11 (Segmentation fault)");
}

TEST(Oracle, AnswersAreKeptAsTheyAre) {
  const Answer answer = ask(norm("ignores_weight", "one_token"));
  EXPECT_EQ(to_json(answer_from_json(to_json(answer))), to_json(answer));
}

TEST(Oracle, OptionsAreAsAShellReadsThem) {
  Question question = norm();
  question.settings = {"tokens=3", "word=it's"};
  question.seed = "4";
  question.own_ops = {"my ops.py"};
  EXPECT_EQ(options_text(question),
            " --case rms_norm/hidden_1/eager --platform sim-sm90 --ops 'my ops.py' --set tokens=3"
            " --set 'word=it'\\''s' --seed 4");
}

json failure(const std::string& tensor, const std::string& line) {
  return {
      {"case", "op/row/eager"},
      {"platform", "sim-sm90"},
      {"failures", {{{"context", ""}, {"lines", {line}}, {"tensors", {{{"tensor", tensor}}}}}}}};
}

TEST(Signature, OneErrorOfValuesIsOneHoweverItShows) {
  const std::string kind = kind_of(failure("out", "out: 1 of 2 rows (row 1) wrong; row 1"));
  EXPECT_EQ(kind, "out: wrong values");
  EXPECT_EQ(kind_of(failure("out", "out: direction wrong in 3 of 4 rows (rows 1-3); row 1")), kind);
  EXPECT_EQ(
      kind_of(failure("out", "out: 3 elements beyond their bound in 1 of 2 rows (row 1); worst")),
      kind);
  EXPECT_EQ(kind_of(failure("out",
                            "out: biased: magnitudes in head 3 are 0.2 % too large on average (7.1 "
                            "standard errors)")),
            kind);
  EXPECT_NE(kind_of(failure("other", "other: 1 of 2 rows (row 1) wrong; row 1")), kind);
  EXPECT_NE(kind_of(failure("out", "out: guard zone damaged, first 4 bytes behind it")), kind);
}

TEST(Signature, KnowsWhatWrongValuesLookLike) {
  const auto look = [](const std::string& pattern) {
    return look_of({{"failures", {{{"tensors", {{{"tensor", "out"}, {"pattern", pattern}}}}}}}});
  };
  const std::string rows = look("row 1 holds the values of row 0");
  EXPECT_TRUE(look_alike(rows, look("row 5 holds the values of row 2")));
  EXPECT_FALSE(look_alike(rows, look("")));
  EXPECT_FALSE(look_alike(look("each wrong row is NaN"), look("each wrong row is zero")));
  // A factor may appear or vanish with the values, and a place changes with the size.
  EXPECT_TRUE(look_alike(look("each wrong row is 1.3 × the expected row"), look("")));
  EXPECT_TRUE(
      look_alike(look("each wrong row is a multiple of the expected row, with factors from 2 to 9"),
                 look("")));
  EXPECT_TRUE(look_alike(look("all rows from 3 on are wrong, none before"), look("")));
  EXPECT_FALSE(look_alike(look("each wrong row is 1.3 × the expected row"), rows));
  const std::string number = look("every wrong element is 0.25 where 0.5 is expected");
  EXPECT_TRUE(look_alike(look("each wrong row is 1.3 × the expected row"), number));
  EXPECT_TRUE(look_alike(number, look("each wrong row is 1.3 × the expected row")));
  EXPECT_FALSE(look_alike(number, look("")));
}

TEST(Signature, KnowsWhichRowsAreWrong) {
  const auto with_rows = [](const std::vector<int>& wrong, int compared) -> json {
    return {{"failures",
             {{{"tensors",
                {{{"tensor", "out"}, {"wrong_rows", wrong}, {"rows_compared", compared}}}}}}}};
  };
  EXPECT_TRUE(is_mostly_right(with_rows({3}, 4)));
  EXPECT_TRUE(is_mostly_right(with_rows({1}, 2)));
  EXPECT_FALSE(is_mostly_right(with_rows({1, 2}, 3)));
  EXPECT_FALSE(is_mostly_right(with_rows({}, 0)));
  EXPECT_TRUE(is_all_wrong(with_rows({0, 1}, 2)));
  EXPECT_FALSE(is_all_wrong(with_rows({1}, 2)));
  EXPECT_FALSE(is_all_wrong(with_rows({}, 0)));
}

TEST(Signature, OfADecodeStepIsDetectorAndOp) {
  json step = failure("out", "x");
  step["findings"] = {{{"detector", "replay"}, {"op", "mhc_pre"}, {"step", 3}, {"text", "t"}}};
  EXPECT_EQ(signature_of(step), "op/row/eager sim-sm90 replay: mhc_pre");
}

TEST(Paths, AFailingArmMayStopEarlyAndNothingElse) {
  const std::vector<Path> whole{{"c", "p", "passed", 10, 40, 20}};
  const std::vector<Path> stopped{{"c", "p", "failed", 2, 8, 3}};
  const std::vector<Path> longer{{"c", "p", "failed", 11, 44, 3}};
  const std::vector<Path> fewer{{"c", "p", "passed", 10, 30, 20}};
  EXPECT_EQ(path_difference(whole, whole), "");
  EXPECT_EQ(path_difference(whole, stopped), "");
  EXPECT_EQ(path_difference(stopped, whole), "");
  EXPECT_NE(path_difference(whole, longer), "");
  EXPECT_EQ(path_difference(whole, fewer),
            "c on p: 10 points and 40 launches there, 10 and 30 here");
  EXPECT_NE(path_difference(whole, {}), "");
  EXPECT_NE(path_difference(whole, {{"c", "q", "passed", 10, 40, 20}}), "");
}

}  // namespace oracle_test
}  // namespace plumb::bisect
