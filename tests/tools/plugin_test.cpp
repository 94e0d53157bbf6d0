// SPDX-License-Identifier: Apache-2.0
//
// plumb run --plugin: an unusable library gives one line and the right exit code, and faults of its
// kernels are found like those of plumb's own. The libraries are tests/must_fail/plugins.
#include <plumb/ops/types.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/command_line.h"

namespace plumb {
namespace plugin_test {

std::string library(const std::string& name) {
  return std::string(PLUMB_TEST_PLUGINS) + "/" + name + ".so";
}

class PluginCommand : public CommandLine {
 protected:
  Words run_of(const std::string& plugin, const std::string& pattern,
               const Words& more = {}) const {
    Words words{"run",        "--case",   pattern,  "--plugin",         plugin,
                "--platform", "sim-sm90", "--json", path("report.json")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  void expect_unusable(const std::string& name, const std::string& says) const {
    const std::string file = library(name);
    expect_refused(run_of(file, "rms_norm", {"--timeout", "5"}), file + ": " + says);
  }

  // Every case of the pattern must fail, and the text of the completed run must contain `says`.
  void expect_found(const std::string& name, const std::string& pattern,
                    const std::string& says) const {
    const Finished finished = run(run_of(library(name), pattern, {"--timeout", "20"}));
    EXPECT_EQ(finished.code, 1) << name << finished.out << finished.err;
    EXPECT_NE(finished.out.find("\n0 passed"), std::string::npos) << name << finished.out;
    EXPECT_NE(finished.out.find(says), std::string::npos) << name << ": want " << says << "\n"
                                                          << finished.out;
    EXPECT_NE(finished.out.find(" --plugin " + library(name)), std::string::npos) << finished.out;
  }
};

TEST_F(PluginCommand, LibrariesThatCannotBeUsedAreUsageErrors) {
  expect_unusable("absent", "No such file or directory");
  expect_unusable("tables_wrong_version",
                  "is made for version 99 of the interface, this plumb has 2");
  expect_unusable("tables_no_table", "plumb_plugin returned no table");
  expect_unusable("tables_no_entry_point", "is not a plug-in: it exports no plumb_plugin");
  expect_unusable("tables_two_entries", "two entries for rms_norm");
  expect_unusable("tables_unknown_op", "entry 1 is of the unknown op \"rms_nrom\"");
  expect_unusable("tables_no_launcher", "hc_head has no launcher");
  expect_unusable("tables_no_chains", "rms_norm declares 0 chains");
  expect_unusable("tables_unknown_unit", "rms_norm declares a sum_unit that is none");
  expect_unusable("tables_unknown_choice",
                  "rms_norm: there is no choice \"roundin\" (did you mean rounding?)");
  expect_unusable("tables_unknown_value", "rms_norm: rounding is once or twice, not thrice");
  expect_unusable("tables_two_values", "rms_norm: rounding is declared twice");
  expect_unusable("tables_stray_plan",
                  "rms_norm keeps a state or a plan, which this op does not have");
  expect_unusable("tables_half_a_state", "rms_norm has only one of state_create and state_destroy");
  expect_unusable("tables_no_name", "its table has no name");
  expect_unusable("tables_no_entries", "its table has no entries");
  expect_unusable("tables_unresolved", "cannot be loaded: undefined symbol");
  expect_unusable("throws_in_entry_point", "plumb_plugin threw: thrown by the entry point");
}

TEST_F(PluginCommand, ALibraryThatDiesOrHangsWhileItIsLoadedIsAUsageError) {
  expect_unusable("tables_crash", "while it was loaded, its process ended with signal 6 (Aborted)");
  expect_unusable("tables_exit", "while it was loaded, its process ended with exit code 7");
  expect_unusable("tables_hang", "while it was loaded, no result after 5 s");
}

TEST_F(PluginCommand, AFileThatIsNoLibraryIsAUsageError) {
  const std::string text = write("text.so", "not a library");
  expect_refused(run_of(text, "rms_norm"), "text.so: cannot be loaded: file too short");
  expect_refused(run_of(folder_.string(), "rms_norm"), "cannot be loaded");
  expect_refused(run_of("", "rms_norm"), "--plugin: names no file");
  expect_refused({"list", "--plugin", text}, "cannot be loaded");
  expect_refused({"show", "--plugin", text, "rms_norm/hidden_1/eager"}, "cannot be loaded");
  expect_refused(run_of(text, "rms_norm", {"--in-process"}), "cannot be loaded");
  expect_refused(run_of(text, "rms_norm", {"--bisect"}), "cannot be loaded", 128);
}

TEST_F(PluginCommand, RightKernelsPassInEveryScenario) {
  const Finished finished =
      run({"run", "--op", "rms_norm", "--op", "q_kv_rms_norm", "--op", "hc_head", "--tier", "smoke",
           "--plugin", library("launches_right"), "--json", path("report.json")});
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  EXPECT_EQ(finished.err, "");
  EXPECT_NE(finished.out.find(" 0 failed, 0 untrusted"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("q_kv_rms_norm               composition"), std::string::npos)
      << finished.out;
  EXPECT_NE(finished.out.find("launches lacks the op"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("one rounding only"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("plug-in launches ("), std::string::npos) << finished.out;
  EXPECT_EQ(finished.out.find("checked kernels\n      "), std::string::npos) << finished.out;
  const std::string report = contents(path("report.json"));
  EXPECT_NE(report.find("\"plugin\": {"), std::string::npos);
  EXPECT_NE(report.find("\"name\": \"launches\""), std::string::npos);
}

TEST_F(PluginCommand, InThisProcessTheResultsAreTheSame) {
  const Words words = run_of(library("launches_right"), "rms_norm/*");
  EXPECT_EQ(run(words).code, 0);
  Words together = words;
  together.insert(together.end(), {"--in-process", "--jobs", "2"});
  EXPECT_EQ(run(together).code, 0);
}

TEST_F(PluginCommand, LackingOpsAreSkippedAndNothingElseIsNoSuccess) {
  const Finished finished = run(run_of(library("launches_right"), "hc_head"));
  EXPECT_EQ(finished.code, 2);
  EXPECT_NE(finished.out.find("\n0 passed, 0 failed, 0 untrusted"), std::string::npos);
  EXPECT_NE(finished.out.find("launches lacks the op"), std::string::npos) << finished.out;
}

TEST_F(PluginCommand, CompositionsUseThePlugInsOwnPlainOpsOrNone) {
  const Finished both =
      run(run_of(library("launches_right"), "q_kv_rms_norm/v4_flash/composition"));
  EXPECT_EQ(both.code, 0) << both.out;
  const Finished plain_wrong =
      run(run_of(library("launches_writes_behind"), "q_kv_rms_norm/v4_flash/composition"));
  EXPECT_EQ(plain_wrong.code, 1) << "the plain ops are plumb's";
}

TEST_F(PluginCommand, ListAndShowKnowThePlugIn) {
  const Finished ops = run({"list", "--ops", "--plugin", library("launches_right")});
  EXPECT_EQ(ops.code, 0) << ops.err;
  EXPECT_EQ(std::count(ops.out.begin(), ops.out.end(), '\n'), 2) << ops.out;
  const Finished cases = run({"list", "--plugin", library("launches_right")});
  EXPECT_EQ(cases.out.find("hc_head"), std::string::npos);
  EXPECT_NE(cases.out.find("q_kv_rms_norm/"), std::string::npos);
  const Finished show = run({"show", "rms_norm/hidden_1/eager", "--platform", "sim-sm90",
                             "--plugin", library("launches_right")});
  EXPECT_EQ(show.code, 0) << show.err;
  EXPECT_NE(show.out.find("numerics of launches: "), std::string::npos) << show.out;
  EXPECT_NE(show.out.find("late streams"), std::string::npos) << show.out;
  EXPECT_EQ(show.out.find("checked kernels"), std::string::npos) << show.out;
  EXPECT_NE(show.out.find("run: passed"), std::string::npos) << show.out;
  const Finished crash = run({"show", "rms_norm/hidden_1/eager", "--platform", "sim-sm90",
                              "--plugin", library("launches_crash_in_launcher")});
  EXPECT_EQ(crash.code, 2);
  EXPECT_NE(crash.err.find("plumb: its process ended with signal 11"), std::string::npos)
      << crash.err;
}

TEST_F(PluginCommand, ACaseInWhichItDiesOrNeverEndsIsLostAndNoOther) {
  expect_found(
      "launches_crash_in_launcher", "rms_norm/hidden_*/eager",
      "crash: its process ended with signal 11 (Segmentation fault), in a call of rms_norm\n");
  const Finished finished =
      run(run_of(library("launches_crash_in_launcher"), "*q_kv_rms_norm/one_token/eager",
                 {"--case", "rms_norm/hidden_1/*"}));
  EXPECT_NE(finished.out.find("\n1 passed, 2 failed"), std::string::npos) << finished.out;
  const Finished hang = run(
      run_of(library("launches_hang_in_kernel"), "rms_norm/hidden_1/eager", {"--timeout", "1"}));
  EXPECT_EQ(hang.code, 1);
  EXPECT_NE(hang.out.find("timeout: no result after 1 s"), std::string::npos) << hang.out;
}

TEST_F(PluginCommand, ACopyOfItsProcessAnswersNothing) {
  const Finished finished =
      run(run_of(library("launches_forks"), "rms_norm/hidden_1/eager",
                 {"--case", "rms_norm/hidden_2*/eager", "--jobs", "1", "--no-diagnosis"}));
  EXPECT_EQ(finished.code, 1) << finished.out << finished.err;
  EXPECT_NE(finished.out.find("\n1 passed, "), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("FAIL  rms_norm/hidden_257/eager"), std::string::npos);
}

TEST_F(PluginCommand, APlugInThatEndsItsProcessCostsTheCase) {
  expect_found("launches_exits", "rms_norm/hidden_1/*",
               "crash: its process ended with exit code 7");
}

TEST_F(PluginCommand, ChangedFloatingPointModesAreRestoredAndReported) {
  const auto expect_noted = [&](const std::string& name, const std::string& says) {
    const Finished finished = run(run_of(library(name), "rms_norm/hidden_*"));
    EXPECT_EQ(finished.code, 0) << name << finished.out << finished.err;
    const std::string line = says + " and did not restore it\n";
    EXPECT_NE(finished.out.find(line), std::string::npos) << name << finished.out;
    const std::string report = contents(path("report.json"));
    EXPECT_NE(report.find("\"notes\": ["), std::string::npos) << name;
    EXPECT_NE(report.find(says), std::string::npos) << name << report;
  };
  expect_noted("launches_rounds_up", "launches: rms_norm changed the rounding mode to upward");
  expect_noted("launches_rounds_up_in_sse",
               "launches: rms_norm changed the rounding mode to upward");
  expect_noted("launches_traps",
               "host function 'rms_norm_kernel' changed the traps of floating-point exceptions");
#if defined(__SSE__)
  expect_noted("launches_flushes",
               "host function 'rms_norm_kernel' changed flush to zero of results");
#endif
  const Finished right = run(run_of(library("launches_right"), "rms_norm/hidden_1/*"));
  EXPECT_EQ(right.out.find("noted"), std::string::npos) << right.out;
  EXPECT_EQ(contents(path("report.json")).find("notes"), std::string::npos);
}

TEST_F(PluginCommand, OnlyPlumbStartsAProcessThatServesAPlugIn) {
  expect_refused({"--serve-plugin", library("launches_right")},
                 "--serve-plugin is an internal command of plumb: standard input is not a socket");
}

// Runs a kernel that stores a wrong result, then searches all that its process ever held for the
// right one: freed memory is not used again.
class PluginMemory : public PluginCommand {
 protected:
  std::string findings_of(const std::string& name, const Words& more = {}) {
    const std::string file = path(name + ".findings");
    setenv("PLUMB_TEST_FINDINGS", file.c_str(), 1);
    setenv("LD_PRELOAD", library("keeps_freed_preloaded").c_str(), 1);
    Words words =
        run_of(library(name), "build_ragged_indices_from_dense/swa_window/full_graph",
               {"--set", "rows=300", "--set", "width=16", "--jobs", "1", "--no-diagnosis"});
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(words);
    unsetenv("LD_PRELOAD");
    unsetenv("PLUMB_TEST_FINDINGS");
    EXPECT_EQ(finished.code, 1) << name << finished.out << finished.err;
    return contents(file);
  }
};

TEST_F(PluginMemory, HoldsNoExpectation) {
  const std::string findings = findings_of("cheats_searches");
  EXPECT_NE(findings.find("nothing"), std::string::npos);
  EXPECT_EQ(findings.find("found"), std::string::npos) << findings;
}

TEST_F(PluginMemory, IsSearchedWell) {
  const std::string planted = findings_of("cheats_searches_planted");
  EXPECT_NE(planted.find("found"), std::string::npos);
  EXPECT_EQ(planted.find("nothing"), std::string::npos) << planted;
  // Counter-test: in the judging process the search finds memory that the reference has freed.
  const std::string together = findings_of("cheats_searches", {"--in-process"});
  EXPECT_NE(together.find("found"), std::string::npos) << together;
}

TEST_F(PluginMemory, HoldsNotTheInputsThatAreJudged) {
  const std::string name = "build_ragged_indices_from_dense/swa_window/*";
  const Words rows{"--set", "rows=200", "--set", "width=16"};
  const Finished finished = run(run_of(library("cheats_rewrites_inputs"), name, rows));
  EXPECT_EQ(finished.code, 1) << finished.out << finished.err;
  EXPECT_NE(finished.out.find("\n0 passed"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("lengths: input changed"), std::string::npos) << finished.out;
}

TEST_F(PluginCommand, WhatLaunchersSayAndThrowIsReported) {
  const std::string one = "rms_norm/hidden_1/*";
  expect_found("throws_in_launcher", one,
               "other: throws: rms_norm threw through its C interface: thrown by a launcher");
  expect_found("throws_no_exception", one, "other: throws: rms_norm threw through its C interface");
  expect_found("throws_in_kernel", one,
               "other: host function 'throwing_kernel' threw: thrown by a kernel");
  expect_found("launches_no_status", one, "rms_norm returned 17, which is not a plumb_status");
  expect_found("launches_refuses", one,
               "invalid_argument: the implementation refused a legal call: too wide");
  expect_found("launches_fails", one, "other: the launch failed: out of luck");
}

TEST_F(PluginCommand, WhatItSaysDoesNotSteerTheTerminal) {
  const Finished finished = run(run_of(library("launches_steers"), "rms_norm/hidden_1/eager"));
  EXPECT_NE(finished.out.find("the launch failed:  [2J gone"), std::string::npos) << finished.out;
  const std::string all = finished.out + finished.err;
  EXPECT_EQ(all.find_first_of("\033\r"), std::string::npos) << all;
  EXPECT_EQ(all.find("\302\233"), std::string::npos) << "an escape sequence begins so too";
}

// The row declares two roundings, but the case uses the plug-in's contract of one rounding.
TEST_F(PluginCommand, CasesRunUnderTheDeclaredContract) {
  const std::string two_roundings = "rms_norm/v4_pro_hidden_twice/*";
  EXPECT_EQ(run(run_of(library("launches_rounds_once"), two_roundings)).code, 0);
  expect_found("launches_wrong_contract", "rms_norm/v4_pro_hidden/eager", "beyond their bound");
  const Finished shown = run(
      {"show", "--plugin", library("launches_rounds_once"), "rms_norm/v4_pro_hidden_twice/eager"});
  EXPECT_NE(shown.out.find("contract: rounding=once"), std::string::npos) << shown.out;
}

TEST_F(PluginCommand, AFailureNamesTheDeclarationThatMakesItRight) {
  const std::string pattern = "rms_norm/v4_pro_hidden/*";
  expect_found("launches_wrong_contract", pattern, "      right if rounding = once: declare it\n");
  const std::string summary =
      " failed cases of rms_norm are right under rounding = once: declare contract = "
      "\"rounding=once\"\n";
  expect_found("launches_wrong_contract", pattern, summary);
  const std::string json = contents(path("report.json"));
  EXPECT_NE(json.find("\"right_if\": \"right if rounding = once: declare it\""), std::string::npos);
  EXPECT_NE(json.find("\"contract\": \"rounding=once\""), std::string::npos);
  const Finished wrong = run(run_of(library("launches_ignores_weight"), pattern));
  EXPECT_EQ(wrong.code, 1);
  EXPECT_EQ(wrong.out.find("right if"), std::string::npos) << wrong.out;
  const Finished xml =
      run(run_of(library("launches_wrong_contract"), pattern, {"--junit", path("report.xml")}));
  EXPECT_EQ(xml.code, 1);
  EXPECT_NE(contents(path("report.xml")).find("<property name=\"right_under.rms_norm\" value=\""),
            std::string::npos);
}

TEST_F(PluginCommand, MisusedServicesFailTheCaseWhateverThePlugInReturns) {
  const std::string one = "rms_norm/hidden_1/*";
  expect_found("launches_no_function", one, "invalid_argument: launch: no function");
  expect_found("launches_foreign_stream", one,
               "invalid_argument: launch: not the stream of an op's parameters");
  expect_found("launches_launches_in_kernel", one,
               "called by a host function or kernel; those may not use the device");
  expect_found("launches_allocates_in_capture", "rms_norm/hidden_1/full_graph",
               "capture_unsupported: allocate 1000 bytes in a capture, in which 0 are left");
  expect_found("launches_allocates_too_much", one,
               "out_of_memory: allocate 18446744073709551615 bytes");
  expect_found("launches_too_many_arguments", one,
               "invalid_argument: launch: more than 1 MiB of arguments");
  expect_found("launches_keeps_scratch", one, "scratch (freed): guard zone damaged, 4 bytes");
  EXPECT_EQ(run(run_of(library("launches_uses_scratch"), one)).code, 0);
  EXPECT_EQ(run(run_of(library("launches_uses_scratch"), "rms_norm/hidden_1/concurrent")).code, 0);
}

TEST_F(PluginCommand, ItsAccessesAreWatchedAsThoseOfKernels) {
  const std::string some = "rms_norm/hidden_2*/*";
  expect_found("launches_crash_in_kernel", some,
               "'rms_norm_kernel': access through a null pointer, at byte 16 from it");
  expect_found("launches_writes_behind", some, "looks like: a store outside its tensor");
  expect_found("launches_writes_far_behind", some, "looks like: an address outside all tensors");
  expect_found("launches_ignores_weight", some, "beyond their bound");
  expect_found("launches_stale_numerics", some, "beyond their bound");
  expect_found("launches_ignores_weight", some,
               "      looks like: rms_norm.weight.absent (ignores weight): explains 100 % of ");
  expect_found("launches_stale_numerics", some, "      looks like: truncated (");
}

TEST_F(PluginCommand, LaunchersThatDoNotEnqueueAreFound) {
  const std::string both = "rms_norm/hidden_257/*";
  expect_found("launches_ignores_stream", both,
               "looks like: the kernel works before the stream reaches its launch");
  expect_found("launches_late_parameters", both, "looks like: a kernel or launcher kept the addre");
  const std::string graph = "rms_norm/hidden_257/full_graph";
  expect_found("launches_once_only", graph,
               "each wrong row was never written (still holds plumb's poison)");
  expect_found("launches_plans_once", graph,
               "the captured graph launches rms_norm_kernel; a call on fresh state launches "
               "plan_kernel, rms_norm_kernel");
}

TEST_F(PluginCommand, MemoryThatIsKeptAcrossRunsIsNamed) {
  for (const char* name : {"launches_holds_scratch", "launches_keeps_arguments"})
    expect_found(name, "rms_norm/hidden_257/eager", "looks like: a pointer that was kept from an ");
}

// Plug-ins that change the index order, or the choice of equal keys: right or wrong as declared.
class PluginOrder : public PluginCommand {
 protected:
  Finished run_with(const std::string& fault, plumb_index_order order, plumb_equal_keys equal) {
    setenv("PLUMB_TEST_INDEX_ORDER", std::to_string(order).c_str(), 1);
    setenv("PLUMB_TEST_EQUAL_KEYS", std::to_string(equal).c_str(), 1);
    return run(run_of(library("selects_" + fault), "top_k_per_row_decode/ties_at_the_threshold/*"));
  }
  void expect_passes(const std::string& fault, plumb_index_order order, plumb_equal_keys equal) {
    const Finished finished = run_with(fault, order, equal);
    EXPECT_EQ(finished.code, 0) << fault << order << equal << finished.out << finished.err;
  }
  void expect_fails(const std::string& fault, plumb_index_order order, plumb_equal_keys equal,
                    const std::string& says) {
    const Finished finished = run_with(fault, order, equal);
    EXPECT_EQ(finished.code, 1) << fault << order << equal << finished.out << finished.err;
    EXPECT_NE(finished.out.find(says), std::string::npos) << finished.out;
  }
};

TEST_F(PluginOrder, IsComparedAsASetUnlessItIsDeclared) {
  expect_passes("changes_order", PLUMB_INDICES_ANY_ORDER, PLUMB_EQUAL_KEYS_ANY);
  expect_passes("changes_order", PLUMB_INDICES_ANY_ORDER, PLUMB_EQUAL_KEYS_LOWEST_INDEX);
  // Graph case: step 0 is compared with a call on fresh state, step 1 with a second replay.
  for (const char* says : {"second launch differs from the first", "replay differs from eager",
                           "4 more steps failed, first: step 1"}) {
    expect_fails("changes_order", PLUMB_INDICES_OWN_ORDER, PLUMB_EQUAL_KEYS_LOWEST_INDEX, says);
  }
  expect_fails("changes_order", PLUMB_INDICES_ASCENDING, PLUMB_EQUAL_KEYS_LOWEST_INDEX,
               "the indices are declared to be ascending, and are not");
  expect_fails("changes_order", PLUMB_INDICES_ASCENDING, PLUMB_EQUAL_KEYS_LOWEST_INDEX,
               "right if index_order = any: declare it");
  expect_fails("right", PLUMB_INDICES_BY_KEY, PLUMB_EQUAL_KEYS_LOWEST_INDEX,
               "the indices are declared to stand by descending key, and are not");
}

TEST_F(PluginOrder, TheChoiceAmongEqualKeysIsFreeUnlessItIsDeclared) {
  expect_passes("changes_equal_keys", PLUMB_INDICES_ASCENDING, PLUMB_EQUAL_KEYS_ANY);
  expect_passes("changes_equal_keys", PLUMB_INDICES_ANY_ORDER, PLUMB_EQUAL_KEYS_ANY);
  expect_fails("changes_equal_keys", PLUMB_INDICES_ANY_ORDER, PLUMB_EQUAL_KEYS_REPEATED,
               "second launch differs from the first");
  expect_fails("changes_equal_keys", PLUMB_INDICES_ASCENDING, PLUMB_EQUAL_KEYS_LOWEST_INDEX,
               "of equal keys those with the lowest indices are declared to be taken");
  expect_fails("changes_equal_keys", PLUMB_INDICES_ASCENDING, PLUMB_EQUAL_KEYS_LOWEST_INDEX,
               "right if equal_keys = any: declare it");
  expect_passes("right", PLUMB_INDICES_ASCENDING, PLUMB_EQUAL_KEYS_LOWEST_INDEX);
}

}  // namespace plugin_test
}  // namespace plumb
