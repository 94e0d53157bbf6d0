// SPDX-License-Identifier: Apache-2.0
//
// The commits of any repository: plumb's own, whose program is built and judges itself, or one of
// kernels, whose plug-in this plumb judges.
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
  std::string build;     // a shell command, run in the worktree
  std::string artefact;  // what it makes there: plumb, or a plug-in
  bool is_plugin = false;
  std::int64_t repeat = 0;  // runs until a commit is good; 0: as its rate wants it
  double timeout = 300;     // seconds that a case may take
};
// With commits as hashes.
nlohmann::json to_json(const CommitsQuestion& question);

class CommitSequence final : public Sequence {
 public:
  // Commits of the question are hashes. Both outlive it.
  CommitSequence(const CommitsQuestion& question, const Repository& repository);

  std::string bad_end() const override { return question_.bad; }
  // With where the two histories part, if the bad end does not come after the good one.
  std::vector<std::string> good_ends() const override { return good_ends_; }
  std::vector<std::string> halving_order(const std::string& bad,
                                         const std::vector<std::string>& goods) const override;
  std::vector<std::string> range(const std::string& bad,
                                 const std::vector<std::string>& goods) const override;
  std::string text(const std::string& hash) const override;
  Subject prepare(const std::string& hash) override;
  void note(const std::string& hash, Verdict verdict) override;

  // What `git bisect replay` reads; "" if nothing had to be built.
  std::string git_bisect_log() const { return worktree_ ? worktree_->bisect_log() : ""; }

 private:
  const CommitsQuestion& question_;
  const Repository& repository_;
  std::vector<std::string> good_ends_;
  std::map<std::string, Verdict> noted_;
  std::optional<Worktree> worktree_;  // once something has to be built
};

}  // namespace plumb::bisect
