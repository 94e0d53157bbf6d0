// SPDX-License-Identifier: Apache-2.0
//
// plumb golden and goldens in plumb run, through the built binary. Stores of a few cases in the
// test's own folder.
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

TEST_F(GoldenCommand, RegenAddsSketchesWhereItIsAskedTo) {
  ASSERT_EQ(regenerate("rms_norm/v4_flash_hidden").code, 0);
  const std::string written = contents(file());
  EXPECT_EQ(regenerate("rms_norm/v4_flash_hidden", {"--sketches"}).out,
            "sim-sm90: 1 cases, 0 of them changed\n")
      << "a new golden has them";
  EXPECT_EQ(contents(file()), written);
}

TEST_F(GoldenCommand, RefusesWithoutAReasonOrAPlatform) {
  expect_golden_refused({"regen", "--platform", "sim-sm90"}, "--reason");
  expect_golden_refused({"regen", "--platform", "sim-sm90", "--reason", " "}, "--reason");
  expect_golden_refused(
      {"regen", "--platform", "sim-sm90", "--reason", "x", "--commit", "88731572"}, "a hash of 40");
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

// Before anything is computed. An installed plumb is tried in tests/plugin_example.cmake.
TEST_F(GoldenCommand, AFolderThatCannotBeWrittenIsRefusedInOneLine) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere; install_test.sh tries another user";
  std::filesystem::permissions(path(""), std::filesystem::perms::owner_write,
                               std::filesystem::perm_options::remove);
  const Finished refused = regenerate("rms_norm/hidden_1");
  std::filesystem::permissions(path(""), std::filesystem::perms::owner_write,
                               std::filesystem::perm_options::add);
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err.find("plumb: cannot write into "), 0u) << refused.err;
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

// The waves of the two platforms add up in different orders.
TEST_F(GoldenCommand, ADiffHasReportsForMachinesAndAPage) {
  for (const char* platform : {"sim-sm90", "sim-gfx942"}) {
    ASSERT_EQ(golden({"regen", "--platform", platform, "--case", "mhc_pre/equal_logits", "--reason",
                      "a test"})
                  .code,
              0);
  }
  const Words diff{"diff", "sim-sm90", "sim-gfx942"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), diff.begin(), diff.end());
    return golden(more);
  };
  const Finished text = with({"--json", path("diff.json"), "--html", path("diff.html")});
  EXPECT_EQ(text.code, 1);
  EXPECT_EQ(text.out, golden(diff).out);
  const Finished json = with({"--json", "-"});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(json.out, contents(path("diff.json")));
  for (const std::string part : {"\"before\": \"sim-sm90\"", "\"after\": \"sim-gfx942\"",
                                 "\"change\": \"moved\"", "\"because_of\": \"wave order\"",
                                 "\"largest\": [", "\"difference\": ", "\"moved_rows\": "}) {
    EXPECT_NE(json.out.find(part), std::string::npos) << part;
  }
  EXPECT_NE(contents(path("diff.html")).find("mhc_pre/equal_logits/eager"), std::string::npos);

  expect_golden_refused({"diff", "sim-sm90", "sim-gfx942", "--html", "-"}, "--html names a file");
  expect_golden_refused(
      {"diff", "sim-sm90", "sim-gfx942", "--html", path("x"), "--json", path("x")},
      "--html names the file of another report");
  expect_golden_refused({"diff", "sim-sm90", "sim-gfx942", "--json", path("no/x.json")},
                        "there is no folder");
  const std::string reviewed = path("reviewed.h5");
  std::filesystem::copy_file(store() + "/sim-sm90/mhc_pre.h5", reviewed);
  expect_golden_refused({"diff", "sim-sm90", reviewed, "--html", reviewed}, "is compared");
}

TEST_F(GoldenCommand, RegenHasTheSameReports) {
  const Finished finished = regenerate("rms_norm/hidden_1", {"--json", "-"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_NE(finished.out.find("\"after\": \"computed now\""), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("\"change\": \"new\""), std::string::npos);
  EXPECT_EQ(finished.out.find("written to"), std::string::npos) << "JSON alone";
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
