// SPDX-License-Identifier: Apache-2.0
#include "process/temporary_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <optional>
#include <string>

namespace plumb::process {
namespace temporary_folder_test {

namespace fs = std::filesystem;

const std::string kName = "plumb-folder-test-" + std::to_string(getpid());

void make_old(const fs::path& folder) {
  fs::last_write_time(folder, fs::file_time_type::clock::now() - std::chrono::minutes(5));
}

TEST(TemporaryFolder, IsRemovedWithWhatIsInIt) {
  fs::path path;
  {
    const TemporaryFolder folder(kName);
    path = folder.path();
    EXPECT_TRUE(fs::is_directory(path));
    std::ofstream(path / "file") << "text";
  }
  EXPECT_FALSE(fs::exists(path));
}

// The folder of a process that was killed. `look` was called while the process lived.
template <class Look>
fs::path folder_of_a_killed_process(Look look) {
  std::array<int, 2> tell = {};
  EXPECT_EQ(pipe(tell.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const TemporaryFolder folder(kName);
    std::ofstream(folder.path() / "file") << "text";
    make_old(folder.path());
    const std::string path = folder.path();
    if (write(tell[1], path.c_str(), path.size() + 1) < 0) _exit(1);
    while (true) pause();
  }
  std::string path;
  for (char c = 0; read(tell[0], &c, 1) == 1 && c != 0;) path += c;
  look(path);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return path;
}

TEST(TemporaryFolder, OfAProcessThatWasKilledIsRemovedByTheNext) {
  const fs::path left = folder_of_a_killed_process([](const fs::path& path) {
    const TemporaryFolder other(kName);
    EXPECT_TRUE(fs::exists(path / "file")) << "it is in use";
  });
  ASSERT_TRUE(fs::exists(left));
  const TemporaryFolder other_name(kName + "-x");
  EXPECT_TRUE(fs::exists(left));
  const TemporaryFolder next(kName);
  EXPECT_FALSE(fs::exists(left));
}

TEST(TemporaryFolder, OfTheLastMinuteStays) {
  const fs::path fresh = fs::temp_directory_path() / (kName + "-abcdef");
  fs::create_directory(fresh);
  {
    const TemporaryFolder folder(kName);
  }
  EXPECT_TRUE(fs::exists(fresh));
  make_old(fresh);
  {
    const TemporaryFolder folder(kName);
  }
  EXPECT_FALSE(fs::exists(fresh));
}

}  // namespace temporary_folder_test
}  // namespace plumb::process
