// SPDX-License-Identifier: Apache-2.0
#include "bisect/commits/commits.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace plumb::bisect {

namespace {

constexpr std::size_t kShortHash = 10;

}  // namespace

nlohmann::json to_json(const CommitsQuestion& question) {
  nlohmann::json all = to_json(question.run);
  all["good"] = question.good;
  all["bad"] = question.bad;
  all["build"] = question.build;
  all[question.is_plugin ? "plugin_of_the_worktree" : "plumb_of_the_worktree"] = question.artefact;
  all["repeat"] = question.repeat;
  all["timeout"] = question.timeout;
  return all;
}

CommitSequence::CommitSequence(const CommitsQuestion& question, const Repository& repository)
    : question_(question), repository_(repository), good_ends_{question.good} {
  for (const std::string& base : repository_.merge_bases(question_.good, question_.bad)) {
    if (base != question_.good) good_ends_.push_back(base);
  }
}

std::vector<std::string> CommitSequence::halving_order(
    const std::string& bad, const std::vector<std::string>& goods) const {
  return repository_.halving_order(bad, goods);
}

std::vector<std::string> CommitSequence::range(const std::string& bad,
                                               const std::vector<std::string>& goods) const {
  return repository_.range(bad, goods);
}

std::string CommitSequence::text(const std::string& hash) const {
  return fmt::format("{} ({})", hash.substr(0, kShortHash), repository_.describe(hash).subject);
}

Subject CommitSequence::prepare(const std::string& hash) {
  if (!worktree_) {
    worktree_.emplace(repository_);
    worktree_->start_bisect(question_.bad, {question_.good});
    for (const auto& [known, verdict] : noted_) worktree_->mark(known, verdict);
  }
  worktree_->check_out(hash);
  return {worktree_->path().string(), question_.build, question_.artefact, question_.is_plugin, {}};
}

void CommitSequence::note(const std::string& hash, Verdict verdict) {
  noted_[hash] = verdict;
  if (worktree_) worktree_->mark(hash, verdict);
}

}  // namespace plumb::bisect
