// SPDX-License-Identifier: Apache-2.0
//
// An interrupted change leaves either the old store or the new one.
#include "golden/store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/golden/example_file.h"

namespace plumb::golden {
namespace store_test {

namespace fs = std::filesystem;

class GoldenStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::path(testing::TempDir()) / ("goldens_" + std::to_string(getpid()))).string();
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string folder_;
};

GoldenFile file_of(const std::string& op, const std::string& line) {
  GoldenFile file = example_file();
  file.op = op;
  file.history = {line};
  file.cases = {example_case(op + "/a/eager")};
  return file;
}

// Ends the process at its n-th step, at once or in the middle of a write.
class FailingPower : public FileSystem {
 public:
  explicit FailingPower(int steps) : left_(steps) {}
  void write(const std::string& path, std::span<const std::byte> bytes) override {
    if (--left_ == 0) {
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size() / 2))
          .flush();
      _exit(1);
    }
    FileSystem::write(path, bytes);
    step();
  }
  void rename(const std::string& from, const std::string& to) override {
    step();
    FileSystem::rename(from, to);
    step();
  }
  void remove(const std::string& path) override {
    step();
    FileSystem::remove(path);
    step();
  }
  void sync_folder(const std::string& path) override {
    step();
    FileSystem::sync_folder(path);
  }

 private:
  void step() {
    if (--left_ == 0) _exit(1);
  }
  int left_;
};

// Replaces two files and removes a third. True if the process was not ended.
bool change_store(const std::string& folder, int steps) {
  const pid_t child = fork();
  if (child == 0) {
    Store store(folder, std::make_shared<FailingPower>(steps));
    GoldenFile gone = file_of("hc_head", "");
    gone.cases.clear();
    store.replace({file_of("rms_norm", "new"), file_of("mhc_pre", "new"), gone});
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

std::string line_of(const Store& store, const std::string& op) {
  const auto file = store.load("sim-sm90", op);
  return file ? file->history.front() : "none";
}

TEST_F(GoldenStoreTest, IsTheOldOneOrTheNewOneWhereverAChangeIsInterrupted) {
  bool ended = false, saw_old = false, saw_new = false;
  int steps = 1;
  for (; !ended && steps < 200; ++steps) {
    fs::remove_all(folder_);
    Store(folder_).replace({file_of("rms_norm", "old"), file_of("hc_head", "old")});
    ended = change_store(folder_, steps);
    const Store store(folder_);
    const bool is_new = store.manifest().contains("sim-sm90/mhc_pre.h5");
    (is_new ? saw_new : saw_old) = true;
    EXPECT_EQ(line_of(store, "rms_norm"), is_new ? "new" : "old") << "step " << steps;
    EXPECT_EQ(line_of(store, "mhc_pre"), is_new ? "new" : "none") << "step " << steps;
    EXPECT_EQ(line_of(store, "hc_head"), is_new ? "none" : "old") << "step " << steps;

    // The next change works after either outcome and removes all leftovers.
    Store again(folder_);
    again.replace({file_of("rms_norm", "newer"), file_of("mhc_pre", "newer")});
    EXPECT_EQ(line_of(Store(folder_), "rms_norm"), "newer");
    EXPECT_EQ(line_of(Store(folder_), "mhc_pre"), "newer");
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      EXPECT_NE(entry.path().extension(), ".new") << entry.path() << " after step " << steps;
    }
  }
  EXPECT_TRUE(ended && saw_old && saw_new);
  EXPECT_GT(steps, 10);
}

TEST_F(GoldenStoreTest, AChangeOfOtherOpsLeavesNothingOfAnInterruptedOneBehind) {
  for (int steps = 1; steps < 30; ++steps) {
    fs::remove_all(folder_);
    Store(folder_).replace({file_of("hc_head", "old")});
    if (change_store(folder_, steps)) return;
    Store(folder_).replace({file_of("mhc_post", "other")});
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      EXPECT_NE(entry.path().extension(), ".new") << entry.path() << " after step " << steps;
    }
  }
  FAIL() << "the change never ended";
}

TEST_F(GoldenStoreTest, OfTwoThatMakeANewStoreOneIsTurnedAway) {
  {
    const FolderLock first(folder_ + "/inner");
    EXPECT_THROW(FolderLock second(folder_ + "/inner"), GoldenError);
  }
  EXPECT_FALSE(fs::exists(folder_)) << "an empty folder stays";
  {
    const FolderLock first(folder_);
    Store(folder_).replace({file_of("hc_head", "old")});
  }
  EXPECT_TRUE(Store(folder_).has("sim-sm90"));
}

TEST_F(GoldenStoreTest, AFileThatIsNotTheManifestsIsRefusedBeforeHdf5SeesIt) {
  Store(folder_).replace({file_of("rms_norm", "old")});
  const std::string path = folder_ + "/sim-sm90/rms_norm.h5";
  std::ofstream(path, std::ios::binary | std::ios::app) << "more";
  const Store store(folder_);
  EXPECT_THROW(
      {
        try {
          store.load("sim-sm90", "rms_norm");
        } catch (const GoldenError& error) {
          EXPECT_EQ(std::string(error.what()),
                    path + ": not the file whose digest the manifest has");
          throw;
        }
      },
      GoldenError);
  fs::remove(path);
  EXPECT_THROW(store.load("sim-sm90", "rms_norm"), GoldenError);
  fs::create_symlink("/etc/passwd", path);
  EXPECT_THROW(store.load("sim-sm90", "rms_norm"), GoldenError);
}

TEST_F(GoldenStoreTest, AFileOfAnotherOpOrPlatformIsRefused) {
  Store(folder_).replace({file_of("rms_norm", "old"), file_of("mhc_pre", "old")});
  fs::copy_file(folder_ + "/sim-sm90/rms_norm.h5", folder_ + "/sim-sm90/mhc_pre.h5",
                fs::copy_options::overwrite_existing);
  Manifest manifest = Store(folder_).manifest();
  manifest["sim-sm90/mhc_pre.h5"] = manifest["sim-sm90/rms_norm.h5"];
  std::ofstream(folder_ + "/manifest.txt") << to_text(manifest);
  EXPECT_THROW(Store(folder_).load("sim-sm90", "mhc_pre"), GoldenError);
}

TEST_F(GoldenStoreTest, KnowsStraysAndLeavesOtherPlatformsAlone) {
  GoldenFile other = file_of("rms_norm", "other");
  other.platform = "sim-gfx942";
  Store store(folder_);
  store.replace({file_of("rms_norm", "old"), other});
  const auto before = fs::last_write_time(folder_ + "/sim-gfx942/rms_norm.h5");
  store.replace({file_of("rms_norm", "new")});
  EXPECT_EQ(fs::last_write_time(folder_ + "/sim-gfx942/rms_norm.h5"), before);
  EXPECT_TRUE(store.strays().empty());
  std::ofstream(folder_ + "/sim-sm90/stray.h5") << "x";
  EXPECT_EQ(store.strays(), std::vector<std::string>{"sim-sm90/stray.h5"});
  EXPECT_TRUE(store.has("sim-gfx942"));
  EXPECT_FALSE(store.has("sim-gfx9"));
}

TEST_F(GoldenStoreTest, AManifestIsReadLineByLine) {
  const std::string digest(32, 'a');
  EXPECT_EQ(parse_manifest(digest + "  sim-sm90/rms_norm.h5\n", "m").size(), 1u);
  for (const std::string& line :
       {digest + " sim-sm90/rms_norm.h5", digest + "  ../rms_norm.h5", digest + "  /a/b.h5",
        digest + "  sim-sm90/../x.h5", std::string("short  a/b.h5"), digest + "  sim-sm90/x.txt"}) {
    EXPECT_THROW(parse_manifest(line + "\n", "m"), GoldenError) << line;
  }
  EXPECT_THROW(parse_manifest(digest + "  sim-sm90/a.h5", "m"), GoldenError) << "no end of line";
  const std::string twice = digest + "  sim-sm90/a.h5\n";
  EXPECT_THROW(parse_manifest(twice + twice, "m"), GoldenError);
}

}  // namespace store_test
}  // namespace plumb::golden
