// SPDX-License-Identifier: Apache-2.0
//
// Exit codes and messages of the plumb command for valid and invalid command lines: one line says
// what is wrong and where, and no file is half written. Runs the built binary.
#include "tests/support/command_line.h"

#include <sys/stat.h>

#include <algorithm>
#include <regex>

namespace plumb {
namespace command_line_test {

TEST_F(CommandLine, APassingCaseExitsWithZeroAndNothingOnStderr) {
  const Finished finished = run(small_run({}));
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.err, "");
  EXPECT_NE(finished.out.find("1 passed, 0 failed"), std::string::npos) << finished.out;
  EXPECT_EQ(finished.out.find('\033'), std::string::npos) << "colour in a file";
  EXPECT_NE(contents(path("report.json")).find("\"exit_code\": 0"), std::string::npos);
}

TEST_F(CommandLine, ALogHasALineForEachOfSeveralOps) {
  const Finished finished =
      run({"run", "--case", "rms_norm/hidden_1/eager", "--case",
           "mtp_shared_head_rms_norm/one_token/eager", "--platform", "sim-sm90", "--json", ""});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.out.find("rms_norm                                      1 of 1 passed\n"), 0u)
      << finished.out;
}

TEST_F(CommandLine, UnknownNamesAreRefusedWithTheNearestKnownOne) {
  expect_refused({}, "a command is missing; there are run, list");
  expect_refused({"rnu"}, "unknown command \"rnu\" (did you mean run?)");
  expect_refused({"golden", "chekc"}, "unknown command \"chekc\" (did you mean check?)");
  expect_refused({"bisect", "comits"}, "unknown command \"comits\" (did you mean commits?)");
  expect_refused({"run", "--frob"}, "--frob");
  expect_refused({"run", "--op", "rms_nrm"}, "unknown op \"rms_nrm\" (did you mean \"rms_norm\"?)");
  expect_refused({"run", "--platform", "sim-sm9"}, "(did you mean sim-sm90?)");
  expect_refused({"run", "--tier", "big"}, "--tier is smoke, default or full, not \"big\"");
  expect_refused({"run", "--case", "rms_norm/hidden_1/eagre"},
                 "did you mean rms_norm/hidden_1/eager?");
  expect_refused({"run", "--case", ""}, "no case matches --case ''");
  expect_refused(
      {"run", "--case", "rms_norm/v4_pro_prefill/eage?"},
      "1 case matches --case 'rms_norm/v4_pro_prefill/eage?', none of them in this tier; "
      "--tier full runs them");
  expect_refused({"list", "--case", "a", "b"}, "not expected: b");
  expect_refused({"show", "rms_norm/*"}, "show wants one case");
}

TEST_F(CommandLine, ParametersOutOfPlaceAreRefused) {
  expect_refused(small_run({"--set", "tokns=3"}),
                 "no parameter \"tokns\" (did you mean \"tokens\"?)");
  expect_refused(small_run({"--set", "tier=full"}), "no parameter \"tier\"");
  expect_refused(small_run({"--set", "tokens=-1"}), "tokens = -1 is outside 0 .. ");
  expect_refused(small_run({"--set", "tokens=99999999999999999999"}), "needs a whole number");
  expect_refused(small_run({"--set", "tokens=3x"}), "needs a whole number, not \"3x\"");
  expect_refused(small_run({"--set", "tokens"}), "--set wants name=value");
  expect_refused(small_run({"--set", "rounding=thrice"}), "rounding is");
  expect_refused(small_run({"--jobs", "0"}), "--jobs");
  expect_refused(small_run({"--seed", "-1"}), "--seed is a whole number");
  expect_refused(small_run({"--seed", "18446744073709551616"}), "--seed is a whole number");
  expect_refused(small_run({"--seed", "1e3"}), "--seed is a whole number");
}

TEST_F(CommandLine, AShapeThatNoMachineHoldsIsRefusedByName) {
  expect_refused(small_run({"--set", "tokens=1048576", "--set", "hidden=1048576"}),
                 "rms_norm/hidden_1/eager: x [1048576, 1048576] takes 2048 GiB");
}

TEST_F(CommandLine, AnOptionTakesOneValueSoThatTheCaseMayFollowIt) {
  const Finished finished =
      run({"show", "--set", "tokens=3", "rms_norm/hidden_1/eager", "--platform", "sim-sm90"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_NE(finished.out.find("tokens = 3"), std::string::npos) << finished.out;
}

TEST_F(CommandLine, CaseFilesThatCannotBeReadAreNamed) {
  expect_refused({"run", "--cases", path("absent.toml")}, "absent.toml: No such file");
  expect_refused({"run", "--cases", folder_.string()}, "it is a folder");
  expect_refused({"run", "--cases", write("garbage.toml", "\x01\xff\xfe\x00garbage")},
                 "garbage.toml:1");
  expect_refused({"run", "--cases", write("empty.toml", "")}, "needs op =");
  expect_refused({"run", "--cases", write("no_rows.toml", "op = \"rms_norm\"\n")},
                 "has no [[row]]");
  const std::string good =
      write("good.toml", "op = \"rms_norm\"\n[[row]]\nname = \"a\"\nwhy = \"w\"\n");
  expect_refused({"run", "--cases", good, "--cases", good}, "a second file for rms_norm");
  expect_refused({"run", "--cases", "/dev/zero"}, "--cases wants a regular file");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  expect_refused({"run", "--cases", path("pipe")}, "pipe: --cases wants a regular file");
}

TEST_F(CommandLine, EachPatternHasToNameACase) {
  expect_refused({"run", "--case", "rms_norm/hidden_1/eager", "--case", "rms_norm/hidden_one"},
                 "no case matches --case rms_norm/hidden_one");
  EXPECT_EQ(run({"run", "--case", "rms_norm/hidden_1/eager", "--json", ""}).code, 0);
}

TEST_F(CommandLine, ARunOfTrivialCasesAloneProvesNothing) {
  const Words trivial{"run", "--case", "rms_norm/no_tokens/eager", "--json", ""};
  EXPECT_EQ(run(trivial).code, 1);
  EXPECT_NE(run(trivial).out.find("only trivial cases passed"), std::string::npos);
  EXPECT_EQ(
      run({"run", "--case", "decode_step/v4/eager", "--platform", "sim-sm90", "--json", ""}).code,
      0)
      << "a decode step has no tensors of its own";
  Words both = trivial;
  both.insert(both.end(), {"--case", "rms_norm/hidden_1/eager"});
  EXPECT_EQ(run(both).code, 0);
}

TEST_F(CommandLine, AStrideOrANumberOfARowIsOneOfTheOp) {
  expect_refused({"run", "--case", "rms_norm/hidden_1/eager", "--set", "gap_y_row_stride=3"},
                 "names no stride of a tensor; there are: out_row_stride, x_row_stride");
  expect_refused({"run", "--case", "rms_norm/hidden_1/eager", "--set", "far_x_row_stride=30"},
                 "31 or 32 bits");
  expect_refused({"run", "--case", "rms_norm/hidden_1/eager", "--set", "esp=0.5"},
                 "rms_norm has no parameter \"esp\" (did you mean \"eps\"?)");
  expect_refused({"run", "--case", "rms_norm/hidden_1/eager", "--set", "eps=small"},
                 "eps needs a number");
  EXPECT_EQ(run({"run", "--case", "rms_norm/hidden_1/eager", "--set", "eps=1"}).code, 0);
  expect_refused(
      {"run", "--case", "fp8_paged_mqa_logits/page64_shuffled/eager", "--set", "block_gap=165"},
      "which 4 does not divide");
  expect_refused(
      {"run", "--case", "fp8_paged_mqa_logits/page64_shuffled/eager", "--set", "page=24"},
      "tiles of 16 tokens");
  expect_refused({"run", "--case", "build_ragged_indices_from_dense/far_rows/eager", "--set",
                  "rows=4096", "--platform", "sim-sm90"},
                 "GiB of addresses, more than 64");
}

TEST_F(CommandLine, CaseFilesWithAMistakeAreNamedWithItsLine) {
  const std::string row = "op = \"rms_norm\"\n[[row]]\nname = \"a\"\nwhy = \"w\"\n";
  const auto refused = [&](const std::string& text, const std::string& says) {
    expect_refused({"run", "--cases", write("rows.toml", text)}, "rows.toml" + says);
  };
  refused(row + "tokns = 3\n",
          ":5: rms_norm has no parameter \"tokns\" (did you mean \"tokens\"?)");
  refused(row + "tokens = 99999999999999999999\n", ":5: ");
  refused(row + "epss = 1\n", ":5: rms_norm has no parameter \"epss\" (did you mean \"eps\"?)");
  refused(row + "eps = \"1\"\n", ":5: eps must be a number");
  refused(row + "tokens = -1\n", ":5: tokens = -1 is outside");
  refused(row + "tokens = 2.5\n", ":5: tokens must be a whole number");
  refused(row + "tier = \"big\"\n", ":5: tier is");
  refused(row + "tier = \"full\"\nonly = \"sim\"\n", ":6: only is \"real\"");
  refused(row + "only = \"real\"\n", ":2: only = \"real\" needs tier = \"full\"");
  refused(row + "\"two\\nlines\" = 3\n", ":5: ");
  refused(row + "[[row]]\nname = \"a\"\nwhy = \"w\"\n", ":5: a is there twice");
  refused("op = \"rms_norm\"\n[[row]]\nname = \"a\"\n", ":2: row a does not say why");
  refused("op = \"rms_norm\"\n[[row]]\nname = \"A b\"\nwhy = \"w\"\n", ":2: a row needs a name");
  refused("op = \"rms_norm\"\n[row]\nname = \"a\"\nwhy = \"w\"\n", ":2: write [[row]]");
  refused("op = \"rms_nom\"\n[[row]]\nname = \"a\"\nwhy = \"w\"\n", ": unknown op \"rms_nom\"");
  refused("op = \"rms_norm\"\n[[row]\n", ":2: ");
}

TEST_F(CommandLine, ReportsThatCannotBeWrittenAreRefusedBeforeAnythingRuns) {
  expect_refused(small_run({"--junit", path("absent/report.xml")}), "there is no folder");
  expect_refused(small_run({"--junit", folder_.string()}), "it is a folder");
  expect_refused(small_run({"--junit", path("report.json")}), "name the same file");
}

TEST_F(CommandLine, AReportThatDoesNotFitMakesTheRunFail) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const Finished finished = run(small_run({"--junit", "/dev/full"}));
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(finished.err, "plumb: cannot write /dev/full: No space left on device\n");
}

// The report without lines that contain a time, and without the member "run".
std::string without_times(const std::string& json) {
  std::istringstream lines(json);
  std::string line, kept;
  bool in_run = false;
  while (std::getline(lines, line)) {
    in_run = in_run || line == " \"run\": {";
    if (!in_run && line.find("\"seconds\"") == std::string::npos) kept += line + "\n";
    if (line == " },") in_run = false;
  }
  return kept;
}

TEST_F(CommandLine, TheReportDoesNotDependOnTheNumberOfJobs) {
  const Words words{"run", "--op", "rms_norm", "--op", "hc_head", "--tier", "smoke", "--json"};
  std::vector<std::string> reports;
  for (const char* jobs : {"1", "2", "7"}) {
    Words with_jobs = words;
    with_jobs.insert(with_jobs.end(), {path(jobs), "--jobs", jobs});
    ASSERT_EQ(run(with_jobs).code, 0);
    reports.push_back(without_times(contents(path(jobs))));
  }
  EXPECT_GT(reports[0].size(), 1000u);
  EXPECT_EQ(reports[0], reports[1]);
  EXPECT_EQ(reports[0], reports[2]);
  Words other_seed = words;
  other_seed.insert(other_seed.end(), {path("other"), "--seed", "1"});
  ASSERT_EQ(run(other_seed).code, 0);
  EXPECT_NE(reports[0], without_times(contents(path("other"))));
}

TEST_F(CommandLine, NamesAreRepeatedOrListedWithCommas) {
  const Finished repeated = run({"list", "--op", "rms_norm", "--op", "hc_head"});
  EXPECT_NE(repeated.out.find("hc_head/"), std::string::npos) << repeated.out;
  EXPECT_EQ(run({"list", "--op", "rms_norm,hc_head"}).out, repeated.out);
  expect_refused({"list", "--op", "rms_norm,hc_haed"}, "unknown op \"hc_haed\"");
  EXPECT_NE(run({"run", "--help"}).out.find("--op OP,..."), std::string::npos);
}

TEST_F(CommandLine, ACaseThatTakesTooLongIsNamedAndTheRunGoesOn) {
  const Finished finished =
      run({"run", "--case", "hc_head/rows_1025/full_graph", "--case", "rms_norm/hidden_1/eager",
           "--platform", "sim-sm90", "--timeout", "0.05", "--json", path("report.json")});
  EXPECT_EQ(finished.code, 1);
  EXPECT_NE(finished.out.find("timeout: no result after 0.05 s"), std::string::npos);
  EXPECT_NE(finished.out.find("2 cases in"), std::string::npos) << finished.out;
}

TEST_F(CommandLine, WithoutProcessesOfTheirOwnCasesGiveTheSameReport) {
  Words words{"run", "--op", "rms_norm", "--tier", "smoke", "--json", path("apart")};
  ASSERT_EQ(run(words).code, 0);
  words.back() = path("together");
  words.push_back("--in-process");
  ASSERT_EQ(run(words).code, 0);
  EXPECT_EQ(without_times(contents(path("apart"))), without_times(contents(path("together"))));
}

TEST_F(CommandLine, ACoverageCellThatIsTooThinFailsTheRun) {
  const Finished enough = run(
      small_run({"--case", "rms_norm/hidden_1/full_graph", "--case", "rms_norm/hidden_1/concurrent",
                 "--case", "rms_norm/v4_pro_hidden/queued", "--least-coverage", "1"}));
  EXPECT_EQ(enough.code, 0) << enough.err;
  const Finished thin = run(small_run({"--least-coverage", "1"}));
  EXPECT_EQ(thin.code, 1);
  EXPECT_NE(thin.err.find("rms_norm full_graph sim-sm90: 0"), std::string::npos) << thin.err;
  EXPECT_NE(thin.err.find("rms_norm concurrent sim-sm90: 0"), std::string::npos) << thin.err;
  EXPECT_NE(thin.err.find("rms_norm queued sim-sm90: 0"), std::string::npos) << thin.err;
  EXPECT_EQ(thin.err.find("eager"), std::string::npos) << thin.err;
}

TEST_F(CommandLine, ADependenceOnTheBatchIsAReportAndNoFailure) {
  const Finished finished =
      run({"invariance", "--case", "mhc_fused_post_pre/rows_17/eager", "--platform", "sim-sm90",
           "--sizes", "1,16,17", "--json", path("invariance.json")});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_NE(finished.out.find("differs in 1 of 3 sizes of tokens; first size 17"),
            std::string::npos)
      << finished.out;
  EXPECT_NE(contents(path("invariance.json")).find("\"invariant\": false"), std::string::npos);
  expect_refused({"invariance", "--sizes", "1,,2"}, "--sizes is a list of 1 .. 65536");
  expect_refused({"invariance", "--op", "rms_norm", "--platform", "hip-gfx942"}, "hip-gfx942: ");
}

TEST_F(CommandLine, AgreementIsATableOfTwoPlatforms) {
  const Words words{"agreement",  "--op",    "rms_norm", "--case", "rms_norm/hidden_1/eager",
                    "--platform", "sim-sm90"};
  Words two = words;
  two.insert(two.end(), {"--platform", "sim-gfx942", "--json", path("agreement.json")});
  const Finished finished = run(two);
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_NE(finished.out.find("rms_norm"), std::string::npos) << finished.out;
  EXPECT_NE(contents(path("agreement.json")).find("\"equal\""), std::string::npos);
  expect_refused(words, "agreement wants two platforms");
  Words absent = words;
  absent.insert(absent.end(), {"--platform", "hip-gfx942"});
  expect_refused(absent, "hip-gfx942: ");
}

TEST_F(CommandLine, ConcurrentCasesGiveTheSameReportWithAnyNumberOfJobs) {
  std::string reports[2];
  for (int more : {0, 1}) {
    const Finished finished = run({"run", "--case", "*/*/concurrent", "--tier", "smoke", "--jobs",
                                   more ? "3" : "1", "--json", path("report.json")});
    EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
    reports[more] = without_times(contents(path("report.json")));
  }
  EXPECT_EQ(reports[0], reports[1]);
}

TEST_F(CommandLine, NothingIsLeftBesideAReport) {
  EXPECT_EQ(run(small_run({"--junit", path("report.xml")})).code, 0);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (Words{"err", "out", "report.json", "report.xml"}));
}

TEST_F(CommandLine, TextThatCannotBeWrittenMakesEveryCommandFail) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  for (const Words& words : {small_run({}), Words{"list"}, Words{"list", "--ops"},
                             Words{"show", "rms_norm/hidden_1/eager", "--platform", "sim-sm90"}}) {
    for (const std::string target : {"/dev/full", ""}) {
      const Finished finished = run(words, target);
      EXPECT_EQ(finished.code, 2) << words[0] << " > " << target;
      EXPECT_EQ(finished.err.find("plumb: cannot write standard output: "), 0u) << finished.err;
    }
  }
  EXPECT_NE(contents(path("report.json")).find("\"exit_code\": 0"), std::string::npos)
      << "the report is whole all the same";
}

TEST_F(CommandLine, UnderBisectUsageErrorsAre128AndCannotSayIs125) {
  expect_refused({"run", "--bisect", "--frob"}, "--frob", 128);
  expect_refused({"run", "--bisect", "--tier", "big"}, "--tier", 128);
  expect_refused({"run", "--bisect", "--platform", "sim-sm9"}, "unknown platform", 128);
  expect_refused(small_run({"--bisect", "--set", "tokns=3"}), "tokns", 128);
  expect_refused({"run", "--bisect", "--cases", path("absent.toml")}, "cannot read", 128);
  expect_refused({"run", "--bisect", "--op", "not_yet_there"}, "unknown op", 125);
  expect_refused({"run", "--bisect", "--case", "rms_norm/not_yet_there/eager"}, "no case", 125);
  EXPECT_EQ(run(small_run({"--bisect"})).code, 0);
}

// No machine has devices of both vendors, so at least one platform is unavailable.
TEST_F(CommandLine, ARunThatSkipsEverythingCannotSay) {
  const std::string platforms = run({"list", "--platforms"}).out;
  int skipped = 0;
  for (const std::string platform : {"cuda-sm90", "hip-gfx942", "hip-gfx90a"}) {
    if (std::regex_search(platforms, std::regex(platform + " +available"))) continue;
    ++skipped;
    const Words words{"run",    "--case", "rms_norm/hidden_1/eager", "--platform",
                      platform, "--json", path("report.json")};
    EXPECT_EQ(run(words).code, 2) << platform;
    Words bisecting = words;
    bisecting.push_back("--bisect");
    EXPECT_EQ(run(bisecting).code, 125) << platform;
  }
  EXPECT_GT(skipped, 0);
}

TEST_F(CommandLine, KernelsAreTimedOnRealDevicesOnly) {
  const Finished simulated = run({"bench", "--platform", "sim-sm90"});
  EXPECT_EQ(simulated.code, 2);
  EXPECT_NE(simulated.err.find("sim-sm90: simulated"), std::string::npos) << simulated.err;
  const Finished unknown = run({"bench", "--platform", "cuda-sm9"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("unknown platform \"cuda-sm9\""), std::string::npos) << unknown.err;
  const Finished absent = run({"bench", "--platform", "hip-gfx90a"});
  EXPECT_EQ(absent.code, 2);
  EXPECT_NE(absent.out.find("hip-gfx90a: skipped: "), std::string::npos) << absent.out;
  const Finished no_table = run({"bench", "--platform", "hip-gfx90a", "--torch-topk",
                                 write("torch.json", "{\"top_k_per_row_decode\": \"fast\"}")});
  EXPECT_EQ(no_table.code, 2);
  EXPECT_NE(no_table.err.find("torch.json: no JSON object"), std::string::npos) << no_table.err;
}

TEST_F(CommandLine, TiersAreTimedInCalibrations) {
  const Words words{"bench",           "--only",  "tiers",  "--tier",           "smoke",
                    "--tier",          "default", "--case", "pack_seq/*/eager", "--json",
                    path("bench.json")};
  const Finished finished = run(words);
  ASSERT_EQ(finished.code, 0) << finished.err;
  const std::string json = contents(path("bench.json"));
  for (const std::string tier : {"smoke", "default"}) {
    const std::regex line(tier + " tier +[0-9.e+-]+ calibrations .* s of processor time");
    EXPECT_TRUE(std::regex_search(finished.out, line)) << finished.out;
    EXPECT_NE(json.find(tier + " tier"), std::string::npos) << json;
  }
  const Finished unasked = run({"bench", "--only", "cases", "--tier", "smoke"});
  EXPECT_EQ(unasked.code, 2);
  EXPECT_NE(unasked.err.find("go with --only tiers"), std::string::npos) << unasked.err;
  const Finished unknown = run({"bench", "--only", "tiers", "--case", "nothing/*"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("plumb run --tier smoke ended with 2"), std::string::npos)
      << unknown.err;
}

TEST_F(CommandLine, TheReproducingLineSurvivesAShell) {
  const std::string file = write(
      "it's mine.toml", "op = \"rms_norm\"\n[[row]]\nname = \"a\"\nwhy = \"w\"\nhidden = 8\n");
  const Finished finished = run({"run", "--case", "rms_norm/a/eager", "--platform", "sim-sm90",
                                 "--cases", file, "--json", path("report.json")});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_NE(contents(path("report.json")).find("--cases '" + path("it'\\\\''s mine.toml") + "'"),
            std::string::npos)
      << contents(path("report.json"));
}

TEST_F(CommandLine, APathThatIsNotUtf8DoesNotCostTheReport) {
  const std::string file =
      write("\xff.toml", "op = \"rms_norm\"\n[[row]]\nname = \"a\"\nwhy = \"w\"\nhidden = 8\n");
  const Finished finished = run({"run", "--case", "rms_norm/a/eager", "--platform", "sim-sm90",
                                 "--cases", file, "--json", path("report.json")});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_NE(contents(path("report.json")).find("\"exit_code\": 0"), std::string::npos);
}

}  // namespace command_line_test
}  // namespace plumb
