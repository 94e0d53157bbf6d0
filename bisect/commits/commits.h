// SPDX-License-Identifier: Apache-2.0
//
// The commits of a repository as a sequence to search. Either plumb's own repository, where each
// commit's program is built and judges itself, or a repository of kernels, whose plug-in this plumb
// judges.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bisect/commits/repository.h"
#include "bisect/search/sequence.h"

namespace plumb::bisect {

struct CommitsQuestion {
  Question run;
  std::string repository = ".", good, bad;
  std::string build;     // shell command, run in the worktree
  std::string artefact;  // file that the build makes: plumb, or a plug-in
  bool is_plugin = false;
  // Runs without failure until a commit is good; 0: computed from the failure rate.
  std::int64_t repeat = 0;
  double timeout = 300;  // seconds per case
};
// The question as JSON, with commits as hashes.
nlohmann::json to_json(const CommitsQuestion& question);

class CommitSequence final : public Sequence {
 public:
  // The question's commits must be hashes. Both arguments must outlive this object.
  CommitSequence(const CommitsQuestion& question, const Repository& repository);

  std::string bad_end() const override { return question_.bad; }
  // Includes the merge base of both ends, if the bad end is not a descendant of the good one.
  std::vector<std::string> good_ends() const override { return good_ends_; }
  std::vector<std::string> halving_order(const std::string& bad,
                                         const std::vector<std::string>& goods) const override;
  std::vector<std::string> range(const std::string& bad,
                                 const std::vector<std::string>& goods) const override;
  std::string text(const std::string& hash) const override;
  Subject prepare(const std::string& hash) override;
  void note(const std::string& hash, Verdict verdict) override;

  // Input for `git bisect replay`; "" if nothing had to be built.
  std::string git_bisect_log() const { return worktree_ ? worktree_->bisect_log() : ""; }

 private:
  const CommitsQuestion& question_;
  const Repository& repository_;
  std::vector<std::string> good_ends_;
  std::map<std::string, Verdict> noted_;
  std::optional<Worktree> worktree_;  // made when something is built for the first time
};

}  // namespace plumb::bisect
