// SPDX-License-Identifier: Apache-2.0
//
// plumb bisect ops through the built binary.
#include <algorithm>
#include <iterator>

#include "tests/support/command_line.h"

namespace plumb {
namespace bisect_ops_command_test {

constexpr const char* kStep = "decode_step/v4/full";

class BisectOps : public CommandLine {
 protected:
  Finished bisect(const Words& more, const std::string& which = kStep) {
    Words words{"bisect", "ops", which, "--platform", "sim-sm90", "--state", path("ops.jsonl")};
    std::copy(more.begin(), more.end(), std::back_inserter(words));
    return run(words);
  }
  static void expect_in(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
};

TEST_F(BisectOps, NamesTheOpAndGoesOnFromItsStateFile) {
  const Words words{"--set", "fault=hc_eps_lost", "--json", path("ops.json")};
  const Finished finished = bisect(words);
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  expect_in(finished.out, "decode_step/v4/full on sim-sm90: the culprit is an op\n    hc_head\n");
  expect_in(finished.out, "2 runs of the steps\n");
  expect_in(finished.out,
            "reproduce: plumb run --case decode_step/v4/full --platform sim-sm90 "
            "--set fault=hc_eps_lost\n");
  const std::string json = contents(path("ops.json"));
  expect_in(json, "\"kind\": \"ops\"");
  expect_in(json, "\"op\": \"hc_head\"");
  expect_in(json, "\"exit_code\": 0");

  const Finished again = bisect(words);
  EXPECT_EQ(again.code, 0);
  expect_in(again.err, "2 answers are remembered");
  expect_in(again.out, "0 runs of the steps\n");
  const Finished explained = run({"bisect", "explain", path("ops.jsonl")});
  EXPECT_EQ(explained.code, 0) << explained.err;
  expect_in(explained.out, "hc_head is blamed first");
  expect_refused({"bisect", "ops", kStep, "--state", path("ops.jsonl")}, "ops.jsonl");

  // As if plumb was built anew.
  std::string of_other_build = contents(path("ops.jsonl"));
  const std::string digest = "\"plumb\":\"";
  ASSERT_NE(of_other_build.find(digest), std::string::npos) << of_other_build;
  of_other_build.insert(of_other_build.find(digest) + digest.size(), "0");
  write("ops.jsonl", of_other_build);
  const Finished rebuilt = bisect(words);
  EXPECT_EQ(rebuilt.code, 2);
  expect_in(rebuilt.err, "answers another question: files plumb is ");
}

// State files of older versions store detectors as numbers, which have changed since.
TEST_F(BisectOps, AnAnswerThatCannotBeReadIsRefusedWithItsLine) {
  const Words words{"--set", "fault=hc_eps_lost"};
  ASSERT_EQ(bisect(words).code, 0);
  const std::string state = contents(path("ops.jsonl"));
  const std::string name = "\"detector\":\"reference\"";
  for (const std::string number : {"\"detector\":7", "\"detector\":\"none\"", "\"other\":1"}) {
    std::string older = state;
    ASSERT_NE(older.find(name), std::string::npos) << state;
    older.replace(older.find(name), name.size(), number);
    write("ops.jsonl", older);
    const Finished finished = bisect(words);
    EXPECT_EQ(finished.code, 2) << finished.out << finished.err;
    expect_in(finished.err, "ops.jsonl:2: the answer to \"watch, sim-sm90, replaced: ");
    expect_in(finished.err, "cannot be read");
  }
}

TEST_F(BisectOps, SaysWhatIsNoOp) {
  const Finished finished = bisect({"--set", "fault=inverse_rope_left_out", "--quiet"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  expect_in(finished.out, ": the cause is not an op but the calls of the step\n");
  expect_in(finished.out, "inverse_rope is left out of the model's order of ops\n");
}

TEST_F(BisectOps, StepsThatPassHaveNoCulprit) {
  const Finished finished = bisect({});
  EXPECT_EQ(finished.code, 1);
  expect_in(finished.err, "decode_step/v4/full passes on sim-sm90: there is nothing to bisect");
}

TEST_F(BisectOps, TwiceNamesTheFirstDifference) {
  const Finished finished =
      bisect({"--twice", "--set", "fault=mhc_row_sums_of_wrong_lanes", "--set", "requests=20",
              "--set", "steps=1", "--set", "context=128", "--set", "drafter=0", "--set",
              "order=reverse", "--json", path("twice.json")});
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  expect_in(
      finished.out,
      "    threads in their order\n        step 0, mhc_pre_broadcast (layer 0 attention mix): "
      "post differs in 4 of 20 rows (rows 16-19) (digests ");
  expect_in(finished.out, "reproduce: plumb bisect ops decode_step/v4/full --twice --platform");
  expect_in(contents(path("twice.json")), "\"from\": \"the op\"");
}

TEST_F(BisectOps, TwiceFindsNothingWhereNothingIsWrong) {
  const Finished finished = bisect({"--twice", "--times", "2"}, "decode_step/v32/full");
  EXPECT_EQ(finished.code, 1);
  expect_in(finished.err, "second runs every call gave the same bits");
}

class BisectOpsOfPlugin : public BisectOps {
 protected:
  Finished search(const std::string& library, const Words& more = {},
                  const std::string& which = kStep) {
    Words words{"bisect",  "ops", which,      "--platform",    "sim-sm90",
                "--state", "",    "--plugin", plugin(library), "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  static std::string plugin(const std::string& library) {
    return std::string(PLUMB_TEST_PLUGINS) + "/" + library + ".so";
  }
};

TEST_F(BisectOpsOfPlugin, NamesEachWrongOp) {
  const Finished finished = search("launches_ignores_weight", {"--json", path("ops.json")});
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  expect_in(finished.out, ": 2 ops of plug-in launches are to blame\n    q_kv_rms_norm\n");
  expect_in(finished.out, "step 0 (plug-in launches; layer 0 q and kv norm): ");
  expect_in(finished.out, "\n    rms_norm\n        step 0 (plug-in launches; final norm): ");
  expect_in(finished.out, "with all of them replaced by plumb's own kernel no failure remains");
  expect_in(finished.out, "--plugin " + plugin("launches_ignores_weight"));
  expect_in(contents(path("ops.json")), "\"replaced_by\": \"plumb's own kernel\"");
}

// A crash names no op, so the search halves the set of the plug-in's ops.
TEST_F(BisectOpsOfPlugin, NamesAnOpThatCrashes) {
  const Finished finished = search("launches_crash_in_kernel");
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  expect_in(finished.out, ": the culprit is an op of plug-in launches\n    rms_norm\n");
}

TEST_F(BisectOpsOfPlugin, RightKernelsAreNotToBlame) {
  const Finished passes = search("launches_right");
  EXPECT_EQ(passes.code, 1);
  expect_in(passes.err, "decode_step/v4/full passes on sim-sm90: there is nothing to bisect");
  const Finished host = search("launches_right", {"--set", "fault=inverse_rope_left_out"});
  EXPECT_EQ(host.code, 0) << host.err;
  expect_in(host.out,
            ": the cause is not an op of plug-in launches\n"
            "    with every op of plug-in launches replaced by plumb's own kernel: step 0");
  const Finished twice = search("launches_right", {"--twice"});
  EXPECT_EQ(twice.code, 1);
  expect_in(twice.err, "second runs every call gave the same bits");
}

TEST_F(BisectOpsOfPlugin, StepsThatCannotBeJudgedAreNotSearched) {
  // The contexts of this row are shorter than the top-k.
  const Finished finished = search("selects_right", {}, "decode_step/v4_burst/full");
  EXPECT_EQ(finished.code, 1) << finished.out;
  expect_in(finished.err, "the step calls no op that selects has");
  const Finished planted = search("launches_right", {"--set", "fault=hc_eps_lost"});
  EXPECT_EQ(planted.code, 1);
  expect_in(planted.err, "the planted kernel is missing in the process of a plug-in");
  expect_refused({"bisect", "ops", kStep, "--plugin", path("absent.so")}, "absent.so");
}

TEST_F(BisectOps, WhatItIsNotForIsRefused) {
  expect_refused({"bisect", "ops", "rms_norm/one_token/eager"}, "bisect ops needs a decode step");
  expect_refused({"bisect", "ops", "decode_step/v4"}, "names 6 cases");
  expect_refused({"bisect", "ops", "decode_step/v5/full"}, "decode_step/v5/full");
  expect_refused({"bisect", "ops"}, "CASE");
  expect_refused({"bisect", "ops", kStep, "--times", "2"}, "--times");
  expect_refused({"bisect", "ops", kStep, "--set", "fault=hc_eps_los"}, "hc_eps_lost");
  expect_refused({"bisect", "ops", kStep, "--seed", "x"}, "--seed");
  expect_refused({"bisect", "ops", kStep, "--json", path("absent/f.json")}, "there is no folder");
}

}  // namespace bisect_ops_command_test
}  // namespace plumb
