// SPDX-License-Identifier: Apache-2.0
//
// The verdict of plumb faults: errors of faults, detectors or clean steps are never lost.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tools/faults/fault_runner.h"
#include "tools/faults/faults_report.h"

namespace plumb::tools {

namespace fault_verdict_test {

using cases::DecodeFault;
using cases::Detector;
using cases::FinishedRun;

const DecodeFault kFault{"planner_hoisted",
                         "vLLM #36611",
                         "sparse_mla_decode",
                         Detector::path,
                         Detector::inputs,
                         {},
                         {}};

FinishedRun seen_by(Detector detector, const std::string& op) {
  FinishedRun run;
  run.run.name = kFault.name;
  run.run.fault = &kFault;
  run.result.findings.push_back({detector, 1, 4, op, "layer 1 attention", "text"});
  return run;
}

FinishedRun clean() {
  FinishedRun run;
  run.run.name = "steady, FULL";
  run.result.steps = run.run.schedule.steps;
  run.result.calls_judged = 300;
  return run;
}

std::string verdict(const std::vector<FinishedRun>& all, int code) {
  const cases::Shares shares = shares_of(all);
  EXPECT_EQ(exit_code(shares), code);
  return shares_text(shares, {});
}

void expect(const std::string& text, const std::string& says) {
  EXPECT_NE(text.find(says), std::string::npos) << "want " << says << "\n" << text;
}

TEST(FaultVerdict, PassesWhereEachFaultIsFoundAndNothingElse) {
  const std::string text =
      verdict({seen_by(Detector::path, "sparse_mla_decode"), clean(), clean()}, 0);
  expect(text, "1 of 1 faults found (100 %); broken op blamed first: 1 (100 %)");
  expect(text, "16 steps in 2 schedules, 600 calls judged, 0 alarms\npassed\n");
}

TEST(FaultVerdict, FailsForAFaultThatNobodySees) {
  FinishedRun missed = seen_by(Detector::path, "sparse_mla_decode");
  missed.result.findings.clear();
  expect(verdict({missed, clean()}, 1), "failed: 1 faults missed");
  const std::string row = fault_text(missed, {});
  expect(row, "MISSED\n");
  expect(row, "vLLM #36611; nothing seen; broken: sparse_mla_decode\n");
}

TEST(FaultVerdict, FailsForAFaultThatOnlyAnotherDetectorSees) {
  const FinishedRun elsewhere = seen_by(Detector::eager, "sparse_mla_decode");
  expect(verdict({elsewhere, clean()}, 1), "1 faults missed");
  expect(fault_text(elsewhere, {}), "MISSED\n");
}

TEST(FaultVerdict, FailsForAFaultThatEndsItsProcess) {
  FinishedRun crashed = seen_by(Detector::path, "sparse_mla_decode");
  crashed.died = "its process ended with signal 11";
  crashed.result = {};
  expect(verdict({crashed, clean()}, 1), "1 faults missed");
  expect(fault_text(crashed, {}), "crash: its process ended with signal 11");
}

TEST(FaultVerdict, FailsIfABlindDetectorSees) {
  FinishedRun seen = seen_by(Detector::path, "sparse_mla_decode");
  seen.result.findings.push_back({Detector::inputs, 1, 5, "inputs", "inputs", "text"});
  expect(verdict({seen, clean()}, 1), "1 faults seen by a detector that should miss them");
  expect(fault_text(seen, {}), "inputs saw it, but should miss it");
}

TEST(FaultVerdict, FailsIfTooFewBlamesAreRight) {
  const FinishedRun right = seen_by(Detector::path, "sparse_mla_decode");
  const FinishedRun wrong = seen_by(Detector::path, "mhc_post");
  expect(fault_text(right, {}), "blamed first: step 1, sparse_mla_decode (layer 1 attention)\n");
  expect(fault_text(wrong, {}),
         "blamed first: step 1, mhc_post (layer 1 attention); broken: sparse_mla_decode\n");
  verdict({right, right, right, right, wrong, clean()}, 0);
  const std::string text = verdict({right, right, right, wrong, clean()}, 1);
  expect(text, "broken op blamed first: 3 (75 %)");
  expect(text, "less than 80 % of the faults");
}

TEST(FaultVerdict, FailsForAlarmsWithoutAFault) {
  FinishedRun wrong = clean(), idle = clean(), short_one = clean(), crashed = clean();
  wrong.result.findings.push_back({Detector::state, 1, 4, "mhc_post", "last mix", "3 bytes"});
  idle.result.calls_judged = 0;
  short_one.result.steps = 1;
  crashed.result = {};
  crashed.died = "its process ended with signal 11";
  expect(verdict({wrong, idle, short_one, crashed, clean()}, 1), "4 alarms without a fault");
  expect(alarm_text(wrong, {}), "state, step 1, mhc_post (last mix): 3 bytes");
  expect(alarm_text(idle, {}), "8 steps and 0 calls judged");
  expect(alarm_text(crashed, {}), "crash: its process ended");
  EXPECT_EQ(alarm_text(clean(), {}), "");
}

FinishedRun elsewhere(const std::vector<std::string>& named) {
  FinishedRun run = seen_by(kFault.seen_by, "any op");
  run.run.elsewhere = true;
  for (const std::string& name : named) run.diagnosis.named.push_back({name, "", {}});
  return run;
}

TEST(FaultVerdict, FailsIfTheDiagnosisNamesTooFewOfTheFaults) {
  const FinishedRun right = elsewhere({kFault.name}), both = elsewhere({"another", kFault.name});
  const FinishedRun wrong = elsewhere({"another"}), none = elsewhere({});
  FinishedRun clean_there = elsewhere({});
  clean_there.result.findings.clear();
  expect(verdict({right, right, right, both, wrong, clean_there}, 0),
         "second setup: 5 faults give findings; the diagnosis names 3 (60 %), and 1 with others "
         "that act alike");
  std::vector<FinishedRun> ten(8, right);
  ten.insert(ten.end(), {wrong, none});
  verdict(ten, 0);
  ten[7] = none;
  expect(verdict(ten, 1), "names less than 80 % of the faults in the second setup");
  ten.erase(ten.begin());
  verdict(ten, 0);  // too few runs: no share is required
  expect(elsewhere_text(right, {}), " named\n");
  expect(elsewhere_text(both, {}), " named with others\n");
  expect(elsewhere_text(wrong, {}), " NOT NAMED\n");
  expect(elsewhere_text(clean_there, {}), " no finding\n");
}

TEST(FaultVerdict, NothingButSkipsSaysNothing) {
  FinishedRun skipped = seen_by(Detector::path, "");
  skipped.result = {};
  skipped.run.not_here = "built without it";
  verdict({skipped}, 2);
  const std::string row = fault_text(skipped, {});
  expect(row, "skipped\n");
  expect(row, "built without it");
}

TEST(FaultRuns, WhatAPlatformCannotHaveIsSkippedHereAndElsewhere) {
  cases::DecodeFault absent = kFault;
  absent.inject = [](cases::DecodeSetup) -> cases::DecodeSetup {
    throw cases::NotOnThisPlatform("built without it");
  };
  const std::vector<const cases::DecodeFault*> faults = {&absent};
  const auto here = cases::fault_runs({"sim-sm90"}, faults, 0);
  const auto elsewhere = cases::elsewhere_runs({"sim-sm90"}, faults, 0);
  ASSERT_TRUE(here.size() == 1 && elsewhere.size() == 1);
  EXPECT_EQ(here[0].not_here, "built without it");
  EXPECT_EQ(here[0].setup.platform, "sim-sm90") << "reports say where";
  EXPECT_EQ(elsewhere[0].not_here, "built without it");
  EXPECT_TRUE(elsewhere[0].elsewhere);
  EXPECT_TRUE(cases::control_runs({"sim-sm90"}, faults, 0).empty());
}

// Run 1 crashes its process.
TEST(FaultRunner, ACrashCostsOneRunAndIsReported) {
  for (const int jobs : {1, 2}) {
    cases::DecodeRun run;
    run.name = kFault.name;
    run.fault = &kFault;
    std::vector<cases::DecodeRun> runs(4, run);
    runs[2].not_here = "built without it";
    std::vector<std::string> told;
    const auto all = run_all(runs, {PLUMB_WORKER_STUB, "watch"}, jobs,
                             [&](const FinishedRun& one) { told.push_back(one.died); });
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all[1].died, "its process ended with signal 11 (Segmentation fault)");
    EXPECT_EQ(told, (std::vector<std::string>{"", all[1].died, "", ""}));
    EXPECT_EQ(all[0].result.steps, 0);
    EXPECT_EQ(all[3].result.steps, 3);
    EXPECT_TRUE(all[0].found() && all[2].skipped() && all[3].found());
    EXPECT_FALSE(all[1].found());
  }
}

// A hypothesis may crash: what was found before is kept.
TEST(FaultRunner, ADiagnosisThatCrashesIsLeftOut) {
  cases::DecodeRun run;
  run.name = kFault.name;
  run.fault = &kFault;
  std::vector<cases::DecodeRun> runs(4, run);
  runs[1].elsewhere = true;
  const auto all = run_all(runs, {PLUMB_WORKER_STUB, "diagnosis"}, 1, [](const FinishedRun&) {});
  EXPECT_EQ(all[1].died, "");
  EXPECT_EQ(all[1].result.steps, 1);
}

// Steps without a fault crash once. A later run that passes does not undo this alarm.
TEST(FaultRunner, ACrashIsAnAlarmEvenIfTheNextRunPasses) {
  const std::string file = testing::TempDir() + "plumb_crashed_once_" + std::to_string(getpid());
  std::filesystem::remove(file);
  const std::vector<cases::DecodeRun> runs(2);
  const auto all = run_all(runs, {PLUMB_WORKER_STUB, "once", file}, 1, [](const FinishedRun&) {});
  EXPECT_EQ(all[1].died, "its process ended with signal 11 (Segmentation fault)");
  EXPECT_TRUE(all[1].alarm());
  std::filesystem::remove(file);
}

TEST(FaultRunner, AWorkerThatCannotBeStartedIsAnError) {
  EXPECT_THROW(run_all(std::vector<cases::DecodeRun>(3), {"/no/such/program"}, 2, [](auto&) {}),
               std::system_error);
}

// A control with any part of a fault would prove nothing about the right code.
TEST(FaultRuns, ControlsAreTheSameStepsWithoutFaults) {
  std::vector<const DecodeFault*> faults;
  for (const DecodeFault& fault : cases::all_decode_faults()) faults.push_back(&fault);
  const auto broken = cases::fault_runs({"sim-sm90"}, faults, 3);
  const auto controls = cases::control_runs({"sim-sm90"}, faults, 3);
  EXPECT_EQ(broken.size(), faults.size());
  EXPECT_LT(controls.size(), broken.size());
  for (const cases::DecodeRun& run : broken) {
    const auto same = std::count_if(controls.begin(), controls.end(), [&](const auto& control) {
      return control.schedule == run.schedule && control.setup.mode == run.setup.mode &&
             control.setup.geometry == run.setup.geometry &&
             control.setup.in_flight == run.setup.in_flight &&
             control.setup.conditions.policy == run.setup.conditions.policy &&
             control.setup.conditions.order == run.setup.conditions.order;
    });
    EXPECT_EQ(same, 1) << run.name;
  }
  for (const cases::DecodeRun& control : controls) {
    EXPECT_EQ(control.fault, nullptr);
    EXPECT_FALSE(control.setup.wrap || control.setup.implementation) << control.name;
  }
}

}  // namespace fault_verdict_test

}  // namespace plumb::tools
