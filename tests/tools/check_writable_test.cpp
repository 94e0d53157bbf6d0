// SPDX-License-Identifier: Apache-2.0
//
// A report file that cannot be written is refused before the first case, with the right reason.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "tools/report.h"
#include "tools/selection.h"

namespace plumb::tools {
namespace check_writable_test {

// Root may write anywhere, so a child process checks as user nobody.
TEST(CheckWritable, SaysWhyThisFileCannotBeWritten) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "plumb-check-writable";
  std::filesystem::create_directories(folder);
  chmod(folder.c_str(), 0555);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(3);
    errno = EINTR;  // left over from another call
    try {
      check_writable((folder / "report.json").string());
    } catch (const UsageError& error) {
      _exit(std::string(error.what()).ends_with(": Permission denied") ? 0 : 1);
    }
    _exit(2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

}  // namespace check_writable_test
}  // namespace plumb::tools
