// SPDX-License-Identifier: Apache-2.0
#include "golden/git.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

extern char** environ;

namespace plumb::golden {

namespace {

// Output of the program, if it can be started and ends with 0.
std::optional<std::string> output_of(std::vector<std::string> command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  pid_t process = -1;
  const int failed = posix_spawnp(&process, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (failed == 0) {
    const ssize_t got = read(ends[0], buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = -1;
  if (failed != 0 || waitpid(process, &status, 0) != process || status != 0) return std::nullopt;
  return text;
}

}  // namespace

std::optional<std::string> ask_git(const std::string& folder,
                                   const std::vector<std::string>& arguments) {
  std::vector<std::string> command{"git", "-C", folder};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return output_of(std::move(command));
}

std::string commit_of(const std::string& folder) {
  const auto head = ask_git(folder, {"rev-parse", "HEAD"});
  if (!head || head->empty()) return "unknown";
  const auto changes =
      ask_git(folder, {"status", "--porcelain", "--untracked-files=no", "--", ":/",
                       ":(exclude,top)golden/*.txt", ":(exclude,top)golden/**/*.h5"});
  return head->substr(0, head->size() - 1) + (changes && changes->empty() ? "" : "+");
}

}  // namespace plumb::golden
