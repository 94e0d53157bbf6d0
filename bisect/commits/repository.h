// SPDX-License-Identifier: Apache-2.0
//
// A git repository, and a worktree of it in which a search checks out, builds and keeps its bisect
// refs. The user's checkout is not touched. All access goes through the git program.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "bisect/search/oracle.h"
#include "bisect/search/process.h"

namespace plumb::bisect {

// There is no repository, no such commit, or no git. The message is one line.
class BadRepository : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Commit {
  std::string hash, subject, author, date;
};

class Repository {
 public:
  explicit Repository(std::string folder);  // the repository's folder or any folder in it

  std::string resolve(const std::string& revision) const;  // hash of the revision's commit
  Commit describe(const std::string& hash) const;
  std::vector<std::string> merge_bases(const std::string& a, const std::string& b) const;
  // Commits reachable from `bad` and from none of `goods`, without `bad`. Commits that split them
  // most evenly come first.
  std::vector<std::string> halving_order(const std::string& bad,
                                         const std::vector<std::string>& goods) const;
  // Commits reachable from `bad` and from none of `goods`, with `bad`, oldest first.
  std::vector<std::string> range(const std::string& bad,
                                 const std::vector<std::string>& goods) const;
  const std::string& folder() const { return folder_; }

 private:
  std::vector<std::string> lines(const std::vector<std::string>& arguments) const;
  std::string folder_;
};

// A worktree in a temporary folder. The destructor removes it with everything that was built in it.
class Worktree {
 public:
  explicit Worktree(const Repository& repository);
  ~Worktree();
  Worktree(const Worktree&) = delete;
  Worktree& operator=(const Worktree&) = delete;

  // Checks out the commit. Tracked files change; untracked files of builds stay, as with git bisect
  // run.
  void check_out(const std::string& hash) const;
  // Records the search with git bisect, in refs of this worktree only.
  void start_bisect(const std::string& bad, const std::vector<std::string>& goods) const;
  void mark(const std::string& hash, Verdict verdict) const;
  std::string bisect_log() const;  // input for `git bisect replay`
  const std::filesystem::path& path() const { return path_; }

 private:
  const Repository& repository_;
  TemporaryFolder folder_;
  std::filesystem::path path_;
};

}  // namespace plumb::bisect
