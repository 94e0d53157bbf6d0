// SPDX-License-Identifier: Apache-2.0
//
// plumb bisect commits on scripted repositories: finds the first bad commit, or it and a commit
// that does not build, with few builds, also for an intermittent failure, and leaves the user's
// checkout unchanged.
#include <tuple>

#include "tests/bisect/commit_search.h"

namespace plumb::bisect {
namespace commits_test {

// The full state of the user's checkout, as git and the file system show it.
std::string checkout(const ScriptedRepository& repository) {
  return repository.shell(
      "git rev-parse HEAD; git symbolic-ref -q HEAD; git status --porcelain --ignored; git diff; "
      "git "
      "for-each-ref; git worktree list; git bisect log; git stash list; git reflog; cat .git/index "
      ".git/HEAD "
      ".git/BISECT_LOG .git/packed-refs | cksum; ls -A . .git");
}

TEST(BisectCommits, FindsTheCommitAndPrintsWhatMovedAndHowToRepeatIt) {
  const ScriptedRepository repository = make({});
  const Bisected found = run(repository, words(repository, 0, 63, kOnce));
  EXPECT_EQ(found.ended.code, 0) << found.ended.err;
  EXPECT_EQ(found.first_bad(), repository.hash(40));
  for (const std::string& text :
       {"first bad commit: " + repository.hash(40) + "\n    commit 40\n    A Person, 2023-11-14",
        std::string("rms_norm/one_token/eager on sim-sm90\n    out: 1 of 1 rows (row 0) wrong"),
        std::string("    matches no fault of the library\n"),
        "reproduce: git checkout " + repository.hash(40) + " && sh -c 'if [",
        std::string("' && ./plumb run --case rms_norm/one_token/eager --platform sim-sm90\n")}) {
    EXPECT_NE(found.ended.out.find(text), std::string::npos) << text << "\n" << found.ended.out;
  }
  EXPECT_LE(builds(repository), kMostBuilds);
  EXPECT_EQ(found.report["builds"].get<int>() + 2, builds(repository));
  EXPECT_NE(found.report["git_bisect_log"].get<std::string>().find("git bisect bad "),
            std::string::npos);
}

TEST(BisectCommits, FindsEveryCommitOfAShortHistory) {
  for (int bad = 1; bad < 6; ++bad) {
    const ScriptedRepository repository = make({bad, {}, 5, 6});
    const Bisected found = run(repository, words(repository, 0, 5, kOnce));
    EXPECT_EQ(found.first_bad(), repository.hash(bad)) << found.ended.err;
  }
}

TEST(BisectCommits, LeavesTheUsersCheckoutAlone) {
  const ScriptedRepository repository = make({});
  repository.shell(
      "git checkout --quiet -b mine; echo changed >number; git add number; echo more >>number; "
      "echo "
      "x >untracked; git stash --quiet; git bisect start main main~5 >/dev/null 2>&1; git "
      "pack-refs "
      "--all; echo changed >number; printf '#!/bin/sh\\nexit 1\\n' "
      ">.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout");
  const std::string before = checkout(repository);
  EXPECT_EQ(run(repository, words(repository, 0, 63, kOnce)).ended.code, 0);
  EXPECT_EQ(checkout(repository), before);
  // The checkout is also unchanged after a search that cannot go on.
  Bisected failed =
      run(repository, words(repository, 0, 63, {{"--state", ""}, {"--build", "exit 3"}}));
  EXPECT_EQ(failed.ended.code, 1);
  EXPECT_EQ(checkout(repository), before);
  failed =
      run(repository, words(repository, 0, 63, {{"--state", ""}, {"--build", "kill -INT $$"}}));
  EXPECT_EQ(failed.ended.code, 2);
  EXPECT_EQ(checkout(repository), before);
}

TEST(BisectCommits, OneThatDoesNotBuildIsSkipped) {
  const ScriptedRepository repository = make({40, {31, 32}});
  const Bisected found = run(repository, words(repository, 0, 63, kOnce));
  EXPECT_EQ(found.first_bad(), repository.hash(40)) << found.ended.err;
  EXPECT_GE(found.report["failed_builds"].get<int>(), 1);
  EXPECT_LE(builds(repository), kMostBuilds);
  EXPECT_NE(found.ended.err.find("cannot say, does not build: error: broken"), std::string::npos);
}

TEST(BisectCommits, ABuildThatMakesNothingIsNotJudgedByTheFileOfAnotherCommit) {
  const ScriptedRepository repository = make({40, {31, 32}});
  std::string build = build_command(repository);
  build.replace(build.find("exit 2"), 6, "exit 0");
  const Bisected found =
      run(repository, words(repository, 0, 63, {{"--repeat", "1"}, {"--build", build}}));
  EXPECT_EQ(found.first_bad(), repository.hash(40)) << found.ended.err;
  EXPECT_NE(found.ended.err.find("does not build: the build made no plumb"), std::string::npos)
      << found.ended.err;
}

TEST(BisectCommits, ACommitOfAMergedBranchIsFound) {
  const ScriptedRepository repository = make({5, {}, 5, 4});  // all commits are good
  const std::string commit = "git add -A && git commit --quiet -m ";
  repository.shell("git checkout --quiet -b side main~1 && echo 1 >one && " + commit +
                   "one && echo 2 >two && " + commit + "two");
  std::ofstream(repository.path() / "plumb.in") << stand_in(true);
  repository.shell(commit + "culprit && echo 3 >three && " + commit +
                   "three && git checkout --quiet main && echo 4 >four && " + commit +
                   "four && git merge --quiet -m merge side && echo 5 >five && " + commit + "five");
  const Bisected found = run(
      repository, words(repository, 0, 3, {{"--repeat", "1"}, {"--bad", "main"}, {"--state", ""}}));
  EXPECT_EQ(found.report["first_bad"]["subject"], "culprit") << found.ended.err;
}

TEST(BisectCommits, ItsLogIsWhatGitBisectReplayReads) {
  const ScriptedRepository repository = make({40, {32}});
  const Bisected found = run(repository, words(repository, 0, 63, kOnce));
  std::ofstream(repository.outside("log")) << found.report["git_bisect_log"].get<std::string>();
  EXPECT_NE(repository.git({"bisect", "replay", repository.outside("log")})
                .find(repository.hash(40) + " is the first bad commit"),
            std::string::npos);
}

TEST(BisectCommits, NeighboursThatDoNotBuildMakeASet) {
  const ScriptedRepository pair = make({40, {39}});
  const Bisected two = run(pair, words(pair, 0, 63, kOnce));
  EXPECT_EQ(two.ended.code, 0) << two.ended.err;
  EXPECT_EQ(two.candidates(), (std::vector<std::string>{pair.hash(39), pair.hash(40)}));
  EXPECT_TRUE(two.report["first_bad"].is_null());
  EXPECT_NE(two.ended.out.find("is one of 2:"), std::string::npos) << two.ended.out;
  const ScriptedRepository itself = make({40, {40, 41}});
  EXPECT_EQ(run(itself, words(itself, 0, 63, kOnce)).candidates(),
            (std::vector<std::string>{itself.hash(40), itself.hash(41), itself.hash(42)}));
}

TEST(BisectCommits, AnotherFailureOnTheWayIsNotTheOneThatIsLookedFor) {
  const ScriptedRepository repository(
      8, [](int i) { return Files{{"plumb.in", stand_in(i >= 3, 5, i < 5 ? "scratch" : "out")}}; });
  const Bisected found = run(repository, words(repository, 0, 7, kOnce));
  EXPECT_EQ(found.candidates(),
            (std::vector<std::string>{repository.hash(3), repository.hash(4), repository.hash(5)}));
  EXPECT_NE(found.ended.out.find("cannot say: fails in another way: rms_norm/one_token/eager "
                                 "sim-sm90 scratch: wrong values"),
            std::string::npos)
      << found.ended.out;
}

TEST(BisectCommits, EndsThatAreNotWhatTheyAreSaidToBeEndIt) {
  const ScriptedRepository repository = make({40, {10}});
  const auto expect_undecided = [&](int good, int bad, const std::string& says) {
    const Bisected found =
        run(repository, words(repository, good, bad, {{"--repeat", "1"}, {"--state", ""}}));
    EXPECT_EQ(found.ended.code, 1);
    EXPECT_NE(found.ended.err.find("plumb: " + says), std::string::npos) << found.ended.err;
    EXPECT_EQ(found.report["exit_code"], 1);
    EXPECT_EQ(found.ended.out, "");
  };
  expect_undecided(0, 39,
                   "the bad end " + repository.hash(39).substr(0, 10) + " (commit 39) is good");
  expect_undecided(41, 63,
                   "the good end " + repository.hash(41).substr(0, 10) +
                       " (commit 41) is bad: rms_norm/one_token/eager sim-sm90 out");
  expect_undecided(10, 63,
                   "the good end " + repository.hash(10).substr(0, 10) +
                       " (commit 10) cannot say: does not build: error: broken");
}

TEST(BisectCommits, ArmsThatRanSomethingElseAreToldApart) {
  const ScriptedRepository repository(8, [](int i) {
    std::string text = stand_in(i >= 3);
    if (i >= 3) text.replace(text.find("\"launches\":2"), 12, "\"launches\":9");
    return Files{{"plumb.in", text}};
  });
  const Bisected found = run(repository, words(repository, 0, 7, kOnce));
  EXPECT_EQ(found.first_bad(), repository.hash(3));
  EXPECT_NE(found.ended.out.find(
                "note: the bad end did other work than the good end: rms_norm/one_token/eager "
                "on sim-sm90: 4 points and 8 launches there, 1 and 9"),
            std::string::npos)
      << found.ended.out;
}

TEST(BisectCommits, APathThatChangesOnTheWayIsTold) {
  const ScriptedRepository repository(8, [](int i) {
    std::string text = stand_in(i >= 6);
    if (i >= 3) text.replace(text.find("\"launches\":8"), 12, "\"launches\":6");
    return Files{{"plumb.in", text}};
  });
  const Bisected found = run(repository, words(repository, 0, 7, kOnce));
  EXPECT_EQ(found.first_bad(), repository.hash(6));
  EXPECT_NE(found.ended.out.find("(commit 5) did other work than the good end: "
                                 "rms_norm/one_token/eager on sim-sm90: 4 points and 8 launches"),
            std::string::npos)
      << found.ended.out;
}

TEST(BisectCommits, AQuestionThatThePlumbOfTheEndsRefusesIsAUsageError) {
  const ScriptedRepository repository(3, [](int) {
    return Files{{"plumb.in", "#!/bin/sh\necho 'plumb: --set: no parameter x' >&2\nexit 128\n"}};
  });
  const Bisected found = run(repository, words(repository, 0, 2, kOnce));
  EXPECT_EQ(found.ended.code, 2);
  EXPECT_NE(found.ended.err.find("(commit 2) refuses the question: --set: no parameter x"),
            std::string::npos)
      << found.ended.err;
}

TEST(BisectCommits, HistoriesThatPartAreJudgedWhereTheyPart) {
  const ScriptedRepository repository = make({40});
  // A side branch from commit 50, which is bad; the branch repairs it.
  repository.shell("git checkout --quiet -b side " + repository.hash(50) + " && git checkout " +
                   repository.hash(0) + " -- plumb.in && git commit --quiet -m repaired");
  const std::map<std::string, std::string> from_side{
      {"--good", "side"}, {"--repeat", "1"}, {"--state", ""}};
  const Bisected fixed = run(repository, words(repository, 0, 63, from_side));
  EXPECT_EQ(fixed.ended.code, 1);
  EXPECT_NE(
      fixed.ended.err.find("the merge base of both ends " + repository.hash(50).substr(0, 10)),
      std::string::npos)
      << fixed.ended.err;
  // A side branch from commit 20, which is good.
  repository.shell("git checkout --quiet -B side " + repository.hash(20) +
                   " && git commit --quiet --allow-empty -m other");
  EXPECT_EQ(run(repository, words(repository, 0, 63, from_side)).first_bad(), repository.hash(40));
}

TEST(BisectCommits, QuestionsThatMakeNoSenseAreRefused) {
  const ScriptedRepository repository = make({3, {}, 5, 6});
  const auto expect_refused = [&](const std::string& option, const std::string& value,
                                  const std::string& says) {
    const Bisected found = run(repository, words(repository, 0, 5, {{option, value}}));
    EXPECT_EQ(found.ended.code, 2) << says;
    EXPECT_NE(found.ended.err.find(says), std::string::npos) << found.ended.err;
    EXPECT_EQ(std::count(found.ended.err.begin(), found.ended.err.end(), '\n'), 1);
    EXPECT_EQ(builds(repository), 0);
  };
  expect_refused("--plumb", "/usr/bin/plumb", "--plumb: /usr/bin/plumb is outside");
  expect_refused("--plumb", "../plumb", "is outside the folder");
  expect_refused("--repo", "/", "/: fatal: not a git repository");
  expect_refused("--repo", "/no/such", "/no/such: no such folder");
  expect_refused("--platform", "sim-sm9", "did you mean sim-sm90?");
  expect_refused("--seed", "x", "--seed is a whole number");
  expect_refused("--json", "/no/such/report", "there is no folder");
  expect_refused("--repeat", "0", "--repeat");
  expect_refused("--plugin", "kernels.so", "--plumb excludes --plugin");
  for (const auto& [good, bad, says] :
       {std::tuple{3, 3, "are the same commit"}, std::tuple{4, 3, "--good comes after --bad"}}) {
    const Bisected found = run(repository, words(repository, good, bad));
    EXPECT_EQ(found.ended.code, 2);
    EXPECT_NE(found.ended.err.find(says), std::string::npos) << found.ended.err;
  }
  expect_refused("--bad", "no-such-tag", "no commit \"no-such-tag\"");
}

TEST(BisectCommits, GoesOnWhereItWasInterrupted) {
  const ScriptedRepository repository = make({40});
  const std::string stop = repository.outside("stop");
  std::vector<std::string> all = words(repository, 0, 63, kOnce);
  // The fourth build sends SIGINT to plumb, as Ctrl-C does.
  std::string& build = *std::find(all.begin(), all.end(), build_command(repository));
  build = "[ $(wc -l <" + repository.outside("builds") + ") = 3 ] && [ ! -e " + stop +
          " ] && touch " + stop + " && kill -INT $PPID && sleep 30; " + build;
  std::ofstream(repository.outside("builds")).flush();
  const Bisected stopped = run(repository, all);
  EXPECT_EQ(stopped.ended.code, 2);
  EXPECT_LT(stopped.ended.seconds, 20);
  EXPECT_NE(
      stopped.ended.err.find("plumb: stopped by signal 2 (Interrupt); the same command continues "
                             "from " +
                             repository.outside("state")),
      std::string::npos)
      << stopped.ended.err;
  EXPECT_EQ(repository.git({"worktree", "list"}).find("plumb-bisect"), std::string::npos);
  const Bisected found = run(repository, all);
  EXPECT_EQ(found.first_bad(), repository.hash(40)) << found.ended.err;
  EXPECT_LE(builds(repository), kMostBuilds);
  EXPECT_NE(found.ended.err.find("3 answers are remembered"), std::string::npos) << found.ended.err;
  const int before = builds(repository);
  EXPECT_EQ(run(repository, all).first_bad(), repository.hash(40));
  EXPECT_EQ(builds(repository), before) << "all of it is known";
  const Bisected explained{
      run_process({{PLUMB_BINARY, "bisect", "explain", repository.outside("state")}, "", {}, 0}),
      {}};
  EXPECT_NE(explained.ended.out.find("asked because: the bad end has to be bad"),
            std::string::npos);
  EXPECT_NE(explained.ended.out.find("first bad: " + repository.hash(40).substr(0, 10)),
            std::string::npos)
      << explained.ended.out;
}

// With a real compiler, a real plug-in and plumb's own verdicts. In the example's repository commit
// 41 rounds wrongly and commit 23 does not compile.
TEST(BisectCommits, FindsTheCommitThatBrokeAPlugIn) {
  const TemporaryFolder folder("plumb-bisect-test");
  const std::string kernels = folder.path() / "kernels";
  ASSERT_TRUE(run_process({{PLUMB_EXAMPLES "/make_repository", kernels}, "", {}, 0}).ok());
  const Ended found = run_process({{PLUMB_BINARY,
                                    "bisect",
                                    "commits",
                                    "--repo",
                                    kernels,
                                    "--good",
                                    "v1.0",
                                    "--bad",
                                    "main",
                                    "--case",
                                    "rms_norm/one_token",
                                    "--build",
                                    "sh build",
                                    "--plugin",
                                    "kernels.so",
                                    "--quiet",
                                    "--state",
                                    folder.path() / "state",
                                    "--json",
                                    folder.path() / "json"},
                                   "",
                                   {"PLUMB_INCLUDE=" PLUMB_HEADERS},
                                   0});
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_EQ(found.err, "");
  EXPECT_NE(found.out.find("round in one instruction"), std::string::npos) << found.out;
  EXPECT_NE(found.out.find("rms_norm/one_token/eager on sim-sm90\n    out: "), std::string::npos)
      << "narrowed to one case";
  EXPECT_NE(found.out.find(" && sh build && plumb run --case rms_norm/one_token/eager --platform "
                           "sim-sm90 --plugin kernels.so\n"),
            std::string::npos)
      << found.out;
  const auto report = nlohmann::json::parse(file_text(folder.path() / "json"));
  EXPECT_EQ(report["first_bad"]["subject"], "round in one instruction");
  EXPECT_LE(report["builds"].get<int>(), 7);
}

}  // namespace commits_test
}  // namespace plumb::bisect
