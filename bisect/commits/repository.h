// SPDX-License-Identifier: Apache-2.0
//
// A git repository, and a worktree of it in which a search checks out, builds and keeps bisect refs
// without the user's checkout noticing. Everything is asked of the git program.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "bisect/search/oracle.h"
#include "bisect/search/process.h"

namespace plumb::bisect {

// No repository, no such commit, no git: one line.
class BadRepository : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Commit {
  std::string hash, subject, author, date;
};

class Repository {
 public:
  explicit Repository(std::string folder);  // anywhere in it

  std::string resolve(const std::string& revision) const;  // its commit's hash
  Commit describe(const std::string& hash) const;
  std::vector<std::string> merge_bases(const std::string& a, const std::string& b) const;
  // What `bad` reaches and no `goods` does, without `bad`: those first that halve them best.
  std::vector<std::string> halving_order(const std::string& bad,
                                         const std::vector<std::string>& goods) const;
  // The same commits with `bad`, the oldest first.
  std::vector<std::string> range(const std::string& bad,
                                 const std::vector<std::string>& goods) const;
  const std::string& folder() const { return folder_; }

 private:
  std::vector<std::string> lines(const std::vector<std::string>& arguments) const;
  std::string folder_;
};

// A worktree in a temporary folder, removed with all that was built in it.
class Worktree {
 public:
  explicit Worktree(const Repository& repository);
  ~Worktree();
  Worktree(const Worktree&) = delete;
  Worktree& operator=(const Worktree&) = delete;

  // Tracked files become those of the commit; what builds have left stays, as for git bisect run.
  void check_out(const std::string& hash) const;
  // git bisect's own record of the search, in refs that belong to this worktree.
  void start_bisect(const std::string& bad, const std::vector<std::string>& goods) const;
  void mark(const std::string& hash, Verdict verdict) const;
  std::string bisect_log() const;  // what `git bisect replay` reads
  const std::filesystem::path& path() const { return path_; }

 private:
  const Repository& repository_;
  TemporaryFolder folder_;
  std::filesystem::path path_;
};

}  // namespace plumb::bisect
