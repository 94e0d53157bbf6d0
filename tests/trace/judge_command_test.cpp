// SPDX-License-Identifier: Apache-2.0
//
// Tests plumb judge: its output, its exit codes, and what it does with files that are damaged or no
// traces.
#include "tests/support/command_line.h"
#include "tests/trace/example_trace.h"

namespace plumb::tests {
namespace judge_command_test {

class JudgeCommand : public CommandLine {
 protected:
  std::string file(const std::string& name) const {
    std::filesystem::create_directories(folder_ / "trace" / "rank-0");
    return path("trace/rank-0/" + name);
  }
  // Writes two steps. In the second, the call of layer 1 is wrong.
  void write_wrong_trace() const {
    ExampleStep first(0), second(1);
    first.norm();
    second.norm();
    second.norm(0.1, 1);
    second.unknown({1}, {2});
    first.write(file("step-000000.h5"));
    second.write(file("step-000001.h5"));
  }
};

TEST_F(JudgeCommand, TheFirstWrongCallIsTheFirstLine) {
  write_wrong_trace();
  const Finished finished =
      run({"judge", path("trace"), "--json", path("j.json"), "--junit", path("j.xml")});
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(finished.err, "");
  EXPECT_EQ(finished.out.find("FIRST WRONG CALL  step 1, call 1 of 3, layer 1: rms_norm "
                              "(Norm.forward), eager\n"),
            0u)
      << finished.out;
  EXPECT_NE(finished.out.find("1 of aten::softmax: plumb has no such op"), std::string::npos);
  EXPECT_NE(finished.out.find("4 calls: 2 passed, 1 failed, 1 not judged\n"), std::string::npos);
  const auto json = nlohmann::json::parse(contents(path("j.json")));
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["wrong"][0]["call"], "0/1/1");
  EXPECT_EQ(json["ops"]["rms_norm"]["failed"], 1);
  EXPECT_EQ(json["not_judged"][0]["calls"], 1);
  EXPECT_NE(contents(path("j.xml")).find("<failure message=\"step 1, call 1 of 3"),
            std::string::npos);
}

TEST_F(JudgeCommand, APageShowsTheCallsInTheirOrder) {
  write_wrong_trace();
  const Finished finished =
      run({"judge", path("trace"), "--json", path("j.json"), "--html", path("j.html")});
  EXPECT_EQ(finished.code, 1);
  const auto json = nlohmann::json::parse(contents(path("j.json")));
  EXPECT_EQ(json["timeline"][0]["calls"], ".");
  EXPECT_EQ(json["timeline"][1]["calls"], ".x-");
  EXPECT_NE(contents(path("j.html")).find("\"timeline\":[{"), std::string::npos);
  expect_refused({"judge", path("trace"), "--html", path("no/j.html")}, "there is no folder");
  EXPECT_EQ(run({"report", path("j.json"), "-o", path("again.html")}).code, 0);
}

TEST_F(JudgeCommand, OneCallCanBeChosen) {
  write_wrong_trace();
  EXPECT_EQ(run({"judge", path("trace"), "--call", "0/1/0"}).code, 0);
  EXPECT_EQ(run({"judge", path("trace"), "--call", "0/1/1"}).code, 1);
  expect_refused({"judge", path("trace"), "--call", "0/1/9"}, "the trace has no call 0/1/9");
  expect_refused({"judge", path("trace"), "--call", "1/1"}, "a call is RANK/STEP/NUMBER");
}

// The call has three rows, and row 1, which a sample of two rows leaves out, is wrong.
TEST_F(JudgeCommand, LargeCallsAreJudgedByRowsAndTheReportSaysSo) {
  ExampleStep step;
  step.norm();
  step.norm(1e-6, 1, 1);
  step.write(file("step-000000.h5"));
  const Finished all = run({"judge", path("trace")});
  EXPECT_EQ(all.code, 1);
  EXPECT_EQ(all.out.find("of 6 rows"), std::string::npos) << all.out;
  const Finished some = run({"judge", path("trace"), "--rows", "2", "--json", path("j.json")});
  EXPECT_EQ(some.code, 0) << some.out;
  EXPECT_NE(some.out.find("rms_norm: 4 of 6 rows of 2 large calls were judged (--rows 0: all). A "
                          "defect in 1 % of the rows is missed in a call of 3 rows, of which 2 are "
                          "judged, with a probability of 100 %, in all with 100 %"),
            std::string::npos)
      << some.out;
  const auto json = nlohmann::json::parse(contents(path("j.json")));
  EXPECT_EQ(json["sampled"]["rms_norm"]["rows_judged"], 4);
  EXPECT_EQ(run({"judge", path("trace"), "--rows", "0"}).code, 1);
  expect_refused({"judge", path("trace"), "--rows", "-1"}, "--rows");
}

TEST_F(JudgeCommand, ATraceWithoutAJudgedCallHasNotPassed) {
  ExampleStep step;
  step.unknown({1}, {2});
  step.write(file("step-000000.h5"));
  const Finished finished = run({"judge", path("trace")});
  EXPECT_EQ(finished.code, 2);
  EXPECT_NE(finished.err.find("no call was judged"), std::string::npos) << finished.err;
}

TEST_F(JudgeCommand, AnUnexplainedNaNOfAnUnknownOpFails) {
  ExampleStep step;
  step.norm();
  step.unknown({1}, {std::nanf("")});
  step.write(file("step-000000.h5"));
  const Finished finished = run({"judge", path("trace")});
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(finished.out.find("FIRST NaN OR INFINITY  step 0, call 1 of 2: aten::softmax"), 0u)
      << finished.out;
}

TEST_F(JudgeCommand, WhatIsNoTraceIsOneLine) {
  expect_refused({"judge", path("nothing")}, "nothing: No such file or directory");
  std::filesystem::create_directories(folder_ / "empty");
  expect_refused({"judge", path("empty")},
                 "empty: not a trace: no step-*.h5 in this folder or in a folder rank-* of it");
  expect_refused({"judge", write("text.h5", "hello")}, "text.h5: no HDF5 file");
  ExampleStep step;
  step.norm();
  step.write(file("step-000000.h5"), "{}");
  expect_refused({"judge", path("trace")}, "step-000000.h5: not a trace of plumb");
}

// Truncated and corrupted files give one line and code 2, or a verdict, and nothing else.
TEST_F(JudgeCommand, DamagedFilesAreOneLine) {
  write_wrong_trace();
  const std::string whole = contents(file("step-000001.h5"));
  for (const double share : {0.0, 0.05, 0.5, 0.99}) {
    const auto bytes = static_cast<std::size_t>(share * static_cast<double>(whole.size()));
    std::ofstream(file("step-000001.h5"), std::ios::binary) << whole.substr(0, bytes);
    expect_refused({"judge", path("trace")}, "step-000001.h5");
  }
  std::uint32_t random = 1;
  for (int i = 0; i < 30; ++i) {
    std::string changed = whole;
    for (int change = 0; change < 3; ++change) {
      random = random * 1664525 + 1013904223;
      changed[random % changed.size()] = static_cast<char>(random >> 24);
    }
    std::ofstream(file("step-000001.h5"), std::ios::binary) << changed;
    const Finished finished = run({"judge", path("trace")});
    EXPECT_TRUE(finished.code == 1 || finished.code == 2) << finished.code << finished.err;
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), finished.code == 2);
  }
}

TEST_F(JudgeCommand, ReportsThatCannotBeWrittenAreRefusedFirst) {
  write_wrong_trace();
  expect_refused({"judge", path("trace"), "--json", path("no/where.json")}, "there is no folder");
}

}  // namespace judge_command_test
}  // namespace plumb::tests
