// SPDX-License-Identifier: Apache-2.0
//
// Cases in processes of their own: a crash, a hang, a wrong answer cost one task.
#include "tools/worker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "tools/wire.h"

namespace plumb::tools {

namespace {

using Answer = std::variant<Bytes, Death>;

std::unique_ptr<Worker> stub(double timeout) {
  return std::make_unique<Worker>(std::vector<std::string>{PLUMB_WORKER_STUB}, timeout);
}

std::string why(const Answer& answer) {
  const auto* death = std::get_if<Death>(&answer);
  return death ? death->why : "it answered";
}

TEST(Worker, AnswersTaskAfterTaskInOneProcess) {
  const auto worker = stub(60);
  const Bytes process = std::get<Bytes>(worker->run(105));
  for (std::uint8_t task = 0; task < 50; ++task) {
    EXPECT_EQ(std::get<Bytes>(worker->run(task)), Bytes{static_cast<std::uint8_t>(task + 1)});
  }
  EXPECT_EQ(std::get<Bytes>(worker->run(105)), process);
  EXPECT_EQ(std::get<Bytes>(worker->run(104)).size(), std::size_t{3} << 20);
  worker->retire();
  EXPECT_NE(std::get<Bytes>(worker->run(105)), process);
}

TEST(Worker, ADeathIsNamedAndCostsOneTask) {
  const auto worker = stub(60);
  EXPECT_EQ(why(worker->run(100)), "its process ended with signal 11 (Segmentation fault)");
  EXPECT_EQ(std::get<Bytes>(worker->run(1)), Bytes{2});
  EXPECT_EQ(why(worker->run(101)), "its process ended with exit code 3");
  EXPECT_EQ(std::get<Bytes>(worker->run(1)), Bytes{2});
  EXPECT_EQ(why(worker->run(103)), "its process ended with signal 6 (Aborted)");
  EXPECT_EQ(std::get<Bytes>(worker->run(1)), Bytes{2});
}

TEST(Worker, AnEndlessTaskIsEnded) {
  const auto worker = stub(0.2);
  const Answer answer = worker->run(102);
  EXPECT_EQ(why(answer), "no result after 0.2 s; its process was ended");
  EXPECT_TRUE(std::get<Death>(answer).timed_out);
  EXPECT_EQ(std::get<Bytes>(worker->run(1)), Bytes{2});
}

TEST(Worker, AProgramThatCannotBeStartedIsAnError) {
  Worker worker({"/no/such/program"}, 1);
  EXPECT_THROW(worker.run(0), std::system_error);
}

TEST(Wire, AFinishedCaseComesBackAsItWas) {
  Finished sent;
  sent.result.id = "op/row/eager";
  sent.result.platform = "sim-sm90";
  sent.result.outcome = cases::Outcome::failed;
  sent.result.points = 3;
  sent.result.phases = {1, 2, 3, 4};
  cases::TensorReport report;
  report.tensor = "out";
  report.wrong_rows = {1, 5};
  report.margin = std::numeric_limits<double>::infinity();
  report.worst = cases::Mismatch{1, 2, "[1, 2]", 0.1, std::nan(""), 1e-300, 7};
  sent.result.failures = {{"step 0", {"line"}, {report}}};
  sent.result.tensors = {{"out", 10, 0.5, 0.25, 0.125, 6, "a for b", {100, 10, 80}}};
  sent.seconds = 0.1;
  const Finished got = finished_from(to_bytes(sent));
  EXPECT_EQ(to_json({got}, "default", 0), to_json({sent}, "default", 0));
  EXPECT_EQ(failure_text(got, {}), failure_text(sent, {}));
  EXPECT_TRUE(std::isnan(got.result.failures[0].reports[0].worst->got));
  EXPECT_EQ(got.result.phases.judge, 4);
  EXPECT_EQ(got.result.tensors[0].zero_share, 0.125);
}

TEST(Wire, ABadRowIsThrownAgain) {
  EXPECT_THROW(finished_from(to_bytes(cases::BadRow("too large"))), cases::BadRow);
}

TEST(Wire, WhatAWatchFoundArrivesAsItWas) {
  cases::WatchResult sent;
  sent.steps = 3;
  sent.calls_judged = 77;
  sent.findings = {{cases::Detector::cost, 2, 9, "host", "call", "text"}};
  const cases::WatchResult got = watch_from(to_bytes(cases::DiagnosedWatch{sent, {}})).result;
  EXPECT_EQ(got.steps, 3);
  EXPECT_EQ(got.calls_judged, 77);
  ASSERT_EQ(got.findings.size(), 1u);
  EXPECT_TRUE(got.found_by(cases::Detector::cost));
  EXPECT_EQ(got.findings[0].step, 2);
  EXPECT_EQ(got.findings[0].position, 9);
  EXPECT_EQ(got.findings[0].op + got.findings[0].call + got.findings[0].text, "hostcalltext");
}

TEST(Wire, ADiagnosisArrivesAsItWas) {
  cases::Diagnosis sent;
  sent.named = {{"fault", "stands for", {8, 7, 1, 2}}};
  sent.next = cases::Explanation{"other", "another", {8, 5, 0, 0}};
  sent.known = 5;
  sent.left_out = 1;
  const cases::Diagnosis got = watch_from(to_bytes(cases::DiagnosedWatch{{}, sent})).diagnosis;
  EXPECT_EQ(text_of(got), text_of(sent));
  EXPECT_EQ(
      text_of(got),
      "looks like: fault (stands for): explains 88 % of 8 wrong values; next best: other, 62 %");
  sent.named.clear();
  EXPECT_EQ(text_of(watch_from(to_bytes(cases::DiagnosedWatch{{}, sent})).diagnosis),
            "no known pattern; next best: other, 62 %; 1 of 5 known faults were not tried");
  cases::Diagnosis skipped;
  skipped.not_tried = "why";
  EXPECT_EQ(text_of(watch_from(to_bytes(cases::DiagnosedWatch{{}, skipped})).diagnosis),
            "not diagnosed: why");
}

TEST(Wire, NonsenseIsRefused) {
  EXPECT_THROW(finished_from({}), std::runtime_error);
  EXPECT_THROW(watch_from({1, 2, 3}), std::runtime_error);
  EXPECT_THROW(finished_from({1, 2, 3}), std::runtime_error);
  Bytes cut = to_bytes(Finished{});
  cut.resize(cut.size() / 2);
  EXPECT_THROW(finished_from(cut), std::runtime_error);
}

}  // namespace

}  // namespace plumb::tools
