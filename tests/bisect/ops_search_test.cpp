// SPDX-License-Identifier: Apache-2.0
//
// The search for broken ops alone: its questions are answered from a table of faults.
#include "bisect/ops/ops_search.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace plumb::bisect {
namespace ops_search_test {

using cases::Detector;
using cases::Finding;

Finding finding(const std::string& op, std::int64_t position = 0,
                Detector detector = Detector::reference) {
  return {detector, 0, position, op, "call of " + op, "wrong"};
}

// A decode step with planted faults, each in one op.
struct Steps {
  struct Fault {
    std::string op;
    Finding shows;
    std::string hides;   // another fault that does not show while this one exists
    bool kills = false;  // true: the fault ends the process
  };
  std::vector<Fault> faults;
  std::vector<Finding> always;                // findings that no op causes
  std::map<Ops, std::vector<float>> results;  // by the set of replaced ops
  int asked = 0;
  std::vector<std::string> notes;

  OpsAnswer watch(const Ops& exchanged) {
    ++asked;
    OpsAnswer answer;
    Ops hidden;
    for (const Fault& fault : faults) {
      if (!exchanged.contains(fault.op)) hidden.insert(fault.hides);
    }
    for (const Fault& fault : faults) {
      if (exchanged.contains(fault.op) || hidden.contains(fault.op)) continue;
      if (fault.kills) return {{}, "its process ended with signal 11"};
      answer.findings.push_back(fault.shows);
    }
    answer.findings.insert(answer.findings.end(), always.begin(), always.end());
    return answer;
  }

  OpsReport search() {
    OpsQuestions ask;
    ask.watch = [this](const Ops& exchanged, const std::string&) { return watch(exchanged); };
    ask.results = [this](const Ops& exchanged) {
      const auto found = results.find(exchanged);
      return found == results.end() ? std::vector<float>{1, 2} : found->second;
    };
    ask.note = [this](const std::string& text) { notes.push_back(text); };
    const Ops all{"a", "b", "c", "d", "e", "f", "g", "h"};
    return search_ops(all, ask);
  }
};

Ops names(const OpsReport& report) {
  Ops all;
  for (const Culprit& one : report.culprits) all.insert(one.op);
  return all;
}

TEST(OpsSearch, StepsThatCouldNotBeJudgedAreNotTakenForClean) {
  OpsQuestions ask;
  ask.watch = [](const Ops& exchanged, const std::string&) -> OpsAnswer {
    if (exchanged.empty()) return {{finding("a")}, "", ""};
    return {{}, "", "it does not support a call of b"};
  };
  const OpsReport report = search_ops({"a", "b"}, ask);
  EXPECT_EQ(report.kind, OpsReport::Conclusion::undecided);
  EXPECT_EQ(report.why, "with a replaced: it does not support a call of b");
  EXPECT_TRUE(report.culprits.empty());
}

TEST(OpsSearch, StepsThatAreRightPass) {
  Steps steps;
  EXPECT_EQ(steps.search().kind, OpsReport::Conclusion::passes);
  EXPECT_EQ(steps.asked, 1);
}

TEST(OpsSearch, OneOpTakesTwoWatches) {
  Steps steps{{{"c", finding("c"), "", false}}, {}, {}, 0, {}};
  const OpsReport report = steps.search();
  EXPECT_EQ(report.kind, OpsReport::Conclusion::ops);
  EXPECT_EQ(names(report), Ops{"c"});
  EXPECT_EQ(report.culprits.front().call, "call of c");
  EXPECT_EQ(steps.asked, 2);
}

TEST(OpsSearch, WhoIsBlamedForAnothersFaultIsLeftOut) {
  Steps steps{{{"d", finding("b"), "", false}}, {}, {}, 0, {}};
  const OpsReport report = steps.search();
  EXPECT_EQ(report.kind, OpsReport::Conclusion::ops);
  EXPECT_EQ(names(report), Ops{"d"});
  EXPECT_LE(steps.asked, 10);
}

TEST(OpsSearch, WhatKillsTheProcessIsFoundInHalves) {
  Steps steps{{{"f", {}, "", true}, {"g", {}, "", true}}, {}, {}, 0, {}};
  const OpsReport report = steps.search();
  EXPECT_EQ(report.kind, OpsReport::Conclusion::ops);
  EXPECT_EQ(names(report), (Ops{"f", "g"}));
  EXPECT_EQ(report.culprits.front().text, "its process ended with signal 11");
}

TEST(OpsSearch, OneThatHidesAnotherIsNamed) {
  Steps steps{{{"a", finding("a"), "e", false}, {"e", finding("e", 5), "", false}}, {}, {}, 0, {}};
  const OpsReport report = steps.search();
  EXPECT_EQ(names(report), (Ops{"a", "e"}));
  EXPECT_EQ(report.culprits[0].hidden_by, "");
  EXPECT_EQ(report.culprits[1].op, "e");
  EXPECT_EQ(report.culprits[1].hidden_by, "a");
}

TEST(OpsSearch, ThoseThatCancelAreSaidSo) {
  Steps steps{{{"a", finding("a"), "", false}, {"b", finding("b", 3), "", false}}, {}, {}, 0, {}};
  steps.results = {{{}, {1, 2.001f}}, {{"a"}, {2, 4}}, {{"b"}, {0.5f, 1}}, {{"a", "b"}, {1, 2}}};
  const OpsReport report = steps.search();
  EXPECT_EQ(names(report), (Ops{"a", "b"}));
  ASSERT_EQ(report.cancelling.size(), 1u);
  EXPECT_LT(report.cancelling[0].both, 0.001);
  EXPECT_NEAR(report.cancelling[0].one_alone, 0.5, 1e-6);
  EXPECT_NEAR(report.cancelling[0].other_alone, 1, 1e-6);
  steps.results[{}] = {3, 6};
  EXPECT_TRUE(steps.search().cancelling.empty());
}

TEST(OpsSearch, WhatNoExchangeRemovesIsNoOp) {
  Steps steps{{}, {finding("inputs", 2, Detector::inputs)}, {}, 0, {}};
  const OpsReport report = steps.search();
  EXPECT_EQ(report.kind, OpsReport::Conclusion::not_an_op);
  EXPECT_EQ(report.left->op, "inputs");
  EXPECT_TRUE(report.culprits.empty());
}

// After an error of the host, ops may have received wrong inputs: only ops before it are culprits.
TEST(OpsSearch, AnOpBesideItIsToBlameInFrontOnly) {
  Steps steps{{{"b", finding("b", 1), "", false}, {"c", finding("c", 7), "", false}},
              {finding("tile_plan", 4, Detector::metadata)},
              {},
              0,
              {}};
  const OpsReport report = steps.search();
  EXPECT_EQ(report.kind, OpsReport::Conclusion::not_an_op);
  EXPECT_EQ(names(report), Ops{"b"});
}

}  // namespace ops_search_test
}  // namespace plumb::bisect
