// SPDX-License-Identifier: Apache-2.0
#include "golden/git.h"

#include <system_error>

#include "process/run.h"

namespace plumb::golden {

std::optional<std::string> ask_git(const std::string& folder,
                                   const std::vector<std::string>& arguments) {
  std::vector<std::string> command{"git", "-C", folder};
  command.insert(command.end(), arguments.begin(), arguments.end());
  try {
    process::Ended git = process::run_to_end({command});
    if (git.ok()) return std::move(git.out);
  } catch (const std::system_error&) {  // git is not installed
  }
  return std::nullopt;
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
