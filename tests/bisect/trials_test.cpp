// SPDX-License-Identifier: Apache-2.0
//
// Trials of plumb bisect commits: 64 commits, a planted change that fails in one of five runs, and
// a commit that does not build. Two trials always run, twenty with PLUMB_FULL=1 in the environment.

#include "tests/bisect/commit_search.h"
#include "tests/support/long_tests.h"

namespace plumb::bisect {
namespace trials_test {

// Bad commits fail in one of five runs. Either a commit in the middle or the one before the planted
// change does not build.
void find_it(int trial) {
  const int bad = 5 + trial * 23 % 55, broken = trial % 5 == 3 ? bad - 1 : 32;
  const ScriptedRepository repository = make({bad, {broken}, 1});
  const Bisected found =
      run(repository, words(repository, 0, 63), static_cast<std::uint64_t>(trial) * 7919 + 1);
  EXPECT_EQ(found.ended.code, 0) << found.ended.err;
  std::vector<std::string> right{repository.hash(bad)};
  if (broken == bad - 1) right.insert(right.begin(), repository.hash(broken));
  if (broken == bad) right.push_back(repository.hash(bad + 1));
  EXPECT_EQ(found.candidates(), right) << found.ended.err;
  EXPECT_LE(builds(repository), kMostBuilds) << found.ended.err;
  EXPECT_GT(found.report["runs"].get<int>(), 300) << "that rare a failure wants many";
}

TEST(BisectTrials, FindTheCommitOfAFailureThatShowsNowAndThen) {
  find_it(0);
  find_it(3);
}

TEST(BisectTrials, AllTwentyFindIt) {
  if (!tests::long_tests_run()) GTEST_SKIP() << tests::kTakesMinutes;
  for (int trial = 0; trial < 20; ++trial) {
    SCOPED_TRACE(trial);
    find_it(trial);
  }
}

}  // namespace trials_test
}  // namespace plumb::bisect
