// SPDX-License-Identifier: Apache-2.0
//
// plumb golden as people type it, and goldens in plumb run. Stores of a few cases in a folder of
// the test's own.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/support/command_line.h"

namespace plumb {
namespace golden_command_test {

class GoldenCommand : public CommandLine {
 protected:
  std::string store() const { return path("goldens"); }

  Finished golden(Words words) const {
    words.insert(words.begin(), "golden");
    words.insert(words.end(), {"--goldens", store()});
    return run(words);
  }
  Finished regenerate(const std::string& cases, const Words& more = {}) const {
    Words words{"regen", "--platform", "sim-sm90", "--case", cases, "--reason", "a test"};
    words.insert(words.end(), more.begin(), more.end());
    return golden(words);
  }
  Finished run_small() const { return run(small_run({"--goldens", store()})); }

  void expect_golden_refused(const Words& words, const std::string& what) const {
    const Finished finished = golden(words);
    EXPECT_EQ(finished.code, 2) << what;
    EXPECT_NE(finished.err.find(what), std::string::npos) << finished.err;
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
  }
  std::string file() const { return store() + "/sim-sm90/rms_norm.h5"; }
};

TEST_F(GoldenCommand, RegenShowsWhatItWritesAndThenHasNothingToDo) {
  const Finished dry =
      golden({"regen", "--platform", "sim-sm90", "--case", "rms_norm/hidden_1", "--dry-run"});
  EXPECT_EQ(dry.code, 0) << "what is not written needs no reason: " << dry.err;
  EXPECT_NE(dry.out.find("new   rms_norm/hidden_1/eager\n"), std::string::npos) << dry.out;
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_EQ(regenerate("rms_norm/hidden_1").code, 0);
  const std::string written = contents(file());
  const Finished again = regenerate("rms_norm/hidden_1");
  EXPECT_EQ(again.out, "sim-sm90: 1 cases, 0 of them changed\n");
  EXPECT_EQ(contents(file()), written);
  const std::string manifest = contents(store() + "/manifest.txt");
  std::filesystem::remove_all(store());
  EXPECT_EQ(regenerate("rms_norm/hidden_1").code, 0);
  EXPECT_EQ(contents(file()), written) << "from nothing come the same bytes";
  EXPECT_EQ(contents(store() + "/manifest.txt"), manifest);
}

TEST_F(GoldenCommand, RefusesWithoutAReasonOrAPlatform) {
  expect_golden_refused({"regen", "--platform", "sim-sm90"}, "--reason");
  expect_golden_refused({"regen", "--platform", "sim-sm90", "--reason", " "}, "--reason");
  expect_golden_refused({"regen", "--reason", "x"}, "one platform at a time");
  const Finished nowhere = run({"golden", "check", "--goldens", ""});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_EQ(nowhere.err, "plumb: --goldens names no folder\n");
  expect_golden_refused({"regen", "--platform", "all", "--reason", "x"}, "one platform at a time");
  expect_golden_refused({"regen", "--platform", "hip-gfx942", "--reason", "x"}, "hip-gfx942: ");
  expect_golden_refused({"check"}, "has no goldens for sim-sm90");
  expect_golden_refused({"diff", "sim-sm90", "nothing"}, "sim-sm90");
  EXPECT_FALSE(std::filesystem::exists(store()));
}

TEST_F(GoldenCommand, OneAtATimeChangesAStore) {
  ASSERT_EQ(regenerate("rms_norm/hidden_1").code, 0);
  const int somebody = open(store().c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(somebody, LOCK_EX | LOCK_NB), 0);
  expect_golden_refused(
      {"regen", "--platform", "sim-sm90", "--case", "rms_norm/one_token", "--reason", "a test"},
      "another plumb is changing these goldens");
  EXPECT_EQ(regenerate("rms_norm/hidden_1", {"--dry-run"}).code, 0) << "reading disturbs nobody";
  EXPECT_EQ(golden({"check", "--platform", "sim-sm90", "--case", "rms_norm/hidden_1"}).code, 0);
  close(somebody);
  EXPECT_EQ(regenerate("rms_norm/one_token").code, 0);
}

TEST_F(GoldenCommand, ARunSaysThatItHasTheSameBits) {
  ASSERT_EQ(regenerate("rms_norm/hidden_1").code, 0);
  const Finished finished = run_small();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_NE(finished.out.find("golden    1 cases with the same bits"), std::string::npos)
      << finished.out;
  EXPECT_NE(contents(path("report.json")).find("\"agreement\": \"same\""), std::string::npos);
}

TEST_F(GoldenCommand, ACaseWithoutItsGoldenFails) {
  ASSERT_EQ(regenerate("rms_norm/hidden_255").code, 0);
  const Finished finished = run_small();
  EXPECT_EQ(finished.code, 1);
  EXPECT_NE(finished.out.find("golden: none for this case; plumb golden regen"), std::string::npos)
      << finished.out;
}

TEST_F(GoldenCommand, OtherInputsAreNotCompared) {
  ASSERT_EQ(regenerate("rms_norm/hidden_255").code, 0);
  for (const Words& more : {Words{"--seed", "1"}, Words{"--set", "tokens=3"}}) {
    Words words = small_run({"--goldens", store()});
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.out;
    EXPECT_EQ(finished.out.find("golden"), std::string::npos);
  }
}

TEST_F(GoldenCommand, AStoreThatSomebodyTouchedStopsTheRunBeforeItBegins) {
  ASSERT_EQ(regenerate("rms_norm/hidden_1").code, 0);
  std::ofstream(file(), std::ios::binary | std::ios::app) << "x";
  const Finished finished = run_small();
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(finished.out, "");
  EXPECT_NE(finished.err.find("not the file whose digest the manifest has"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path("report.json")));
  expect_golden_refused({"check", "--platform", "sim-sm90"}, "not the file whose digest");
  expect_golden_refused({"regen", "--platform", "sim-sm90", "--reason", "x"}, "not the file");
}

TEST_F(GoldenCommand, CheckFailsForStraysAndGoldensWithoutCases) {
  ASSERT_EQ(regenerate("rms_norm/hidden_1").code, 0);
  EXPECT_EQ(golden({"check", "--platform", "sim-sm90", "--case", "rms_norm/hidden_1"}).code, 0);
  const Finished missing = golden({"check", "--platform", "sim-sm90", "--case", "rms_norm"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.out.find("FAIL  rms_norm/hidden_255/eager   sim-sm90"), std::string::npos);
}

TEST_F(GoldenCommand, AReviewedFileIsApprovedByTheDigestOfItsResults) {
  ASSERT_EQ(regenerate("rms_norm/hidden_1").code, 0);
  ASSERT_EQ(regenerate("rms_norm/hidden_255").code, 0);
  const std::string reviewed = path("reviewed.h5");
  std::filesystem::copy_file(file(), reviewed);
  std::filesystem::remove_all(store());
  ASSERT_EQ(regenerate("rms_norm/hidden_1").code, 0);

  const Finished diff = golden({"diff", "sim-sm90", reviewed});
  EXPECT_EQ(diff.code, 1);
  EXPECT_NE(diff.out.find("new   rms_norm/hidden_255/eager"), std::string::npos) << diff.out;
  const std::string digest = diff.out.substr(diff.out.rfind("results ") + 8, 32);
  expect_golden_refused({"approve", reviewed, "--results", digest}, "--reason");
  expect_golden_refused({"approve", reviewed, "--results", "abc", "--reason", "seen"},
                        "other results than those reviewed");
  const Finished approved =
      golden({"approve", reviewed, "--results", digest, "--reason", "seen by two"});
  EXPECT_EQ(approved.code, 0) << approved.err;
  EXPECT_EQ(golden({"diff", "sim-sm90", reviewed}).code, 0);
  EXPECT_NE(contents(file()).find("plumb golden approve: seen by two"), std::string::npos);
}

TEST_F(GoldenCommand, FilesThatAreNoGoldensAreRefusedInOneLine) {
  ASSERT_EQ(regenerate("rms_norm/hidden_1").code, 0);
  const std::string whole = contents(file());
  expect_golden_refused({"diff", "sim-sm90", write("text.h5", "no HDF5")}, "not an HDF5 file");
  expect_golden_refused({"diff", "sim-sm90", write("empty.h5", "")}, "empty.h5: empty");
  expect_golden_refused({"diff", "sim-sm90", write("half.h5", whole.substr(0, whole.size() / 2))},
                        "half.h5: ");
  expect_golden_refused({"approve", path("text.h5"), "--results", "x", "--reason", "y"},
                        "not an HDF5 file");
  expect_golden_refused({"diff", "sim-sm90", "no such revision"},
                        "neither a file nor a platform nor a git revision");
}

}  // namespace golden_command_test
}  // namespace plumb
