// SPDX-License-Identifier: Apache-2.0
//
// The commit since which a case fails, in any repository: plumb's own, whose program is built and
// judges itself, or one of kernels, whose plug-in this plumb judges.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bisect/journal.h"
#include "bisect/progress.h"
#include "bisect/repetition.h"
#include "bisect/repository.h"
#include "bisect/search.h"

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

// What is known of one commit.
struct Judged {
  Repeated result;
  bool built = false;
  double build_seconds = 0;
};
nlohmann::json to_json(const Judged& judged);
Judged judged_from_json(const nlohmann::json& json);

struct CommitsResult {
  // Oldest first; one, unless commits that cannot say stand before the first bad one.
  std::vector<Commit> candidates;
  std::map<std::string, std::string> unjudged;  // of these: why
  Answer failure;                               // at the last of them, which is bad
  Question run;                                 // with the case and platform that failed
  std::int64_t builds = 0, failed_builds = 0;   // beside the two ends
  std::int64_t runs = 0, commits = 0;           // of the case; that were candidates at first
  std::string rate;                             // how often it failed, and what follows
  std::vector<std::string> warnings;
  std::string git_bisect_log;
};

class CommitSearch {
 public:
  // Commits of the question are resolved already. Journal and progress outlive it.
  CommitSearch(CommitsQuestion question, const Repository& repository, Journal& journal,
               Progress& progress);
  // Throws Undecided, Interrupted.
  CommitsResult run();

 private:
  Judged judge(const std::string& hash, const std::string& why, int left, bool bad_end);
  Judged judge_now(const std::string& hash, bool bad_end);
  Answer ask_once(const std::string& plugin_or_program);
  void remember(const std::string& hash, const Judged& judged);
  void decide(const std::string& text);
  void judge_bad_end();
  std::vector<std::string> judge_good_ends();
  void narrow(const Answer& failure);
  void check_paths();
  void finish(const FirstBad& found);
  std::string short_text(const std::string& hash) const;

  CommitsQuestion question_;
  const Repository& repository_;
  Journal& journal_;
  Progress& progress_;
  Repeater repeater_;
  std::optional<Worktree> worktree_;
  std::map<std::string, Judged> judged_;
  CommitsResult result_;
};

}  // namespace plumb::bisect
