// SPDX-License-Identifier: Apache-2.0
#include "bisect/commits.h"

#include <fmt/format.h>

#include <algorithm>

#include "bisect/build.h"
#include "bisect/signature.h"

namespace plumb::bisect {

namespace {

using nlohmann::json;

constexpr std::size_t kShortHash = 10;

// Beside one good answer per step: the good end, and merge bases.
std::int64_t most_goods(std::size_t candidates) { return steps_left(candidates) + 3; }

std::string diagnosis_of(const Answer& answer) {
  return answer.failed.is_object() ? answer.failed.value("diagnosis", "") : "";
}

// Of the case that the search has narrowed to.
std::vector<Path> paths_of(const Answer& answer, const Question& question) {
  std::vector<Path> paths;
  for (const Path& path : answer.paths) {
    if (path.which == question.which && path.platform == question.platform) paths.push_back(path);
  }
  return paths;
}

}  // namespace

json to_json(const CommitsQuestion& question) {
  json all = to_json(question.run);
  all["good"] = question.good;
  all["bad"] = question.bad;
  all["build"] = question.build;
  all[question.is_plugin ? "plugin_of_the_worktree" : "plumb_of_the_worktree"] = question.artefact;
  all["repeat"] = question.repeat;
  all["timeout"] = question.timeout;
  return all;
}

json to_json(const Judged& judged) {
  json all = to_json(judged.result.answer);
  all["runs"] = judged.result.runs;
  all["failures"] = judged.result.failures;
  all["built"] = judged.built;
  all["build_seconds"] = judged.build_seconds;
  return all;
}

Judged judged_from_json(const json& from) {
  return {{answer_from_json(from), from.at("runs"), from.at("failures")},
          from.at("built"),
          from.at("build_seconds")};
}

CommitSearch::CommitSearch(CommitsQuestion question, const Repository& repository, Journal& journal,
                           Progress& progress)
    : question_(std::move(question)),
      repository_(repository),
      journal_(journal),
      progress_(progress),
      repeater_(most_goods(repository.range(question_.bad, {question_.good}).size()),
                question_.repeat) {
  result_.run = question_.run;
}

std::string CommitSearch::short_text(const std::string& hash) const {
  return fmt::format("{} ({})", hash.substr(0, kShortHash), repository_.describe(hash).subject);
}

void CommitSearch::decide(const std::string& text) {
  journal_.note(text);
  progress_.line(text);
}

Answer CommitSearch::ask_once(const std::string& artefact) {
  Question question = result_.run;
  if (question_.is_plugin) question.plugin = artefact;
  ++result_.runs;
  const Oracle oracle(question_.is_plugin ? "/proc/self/exe" : artefact, question_.timeout);
  return oracle.ask(question);
}

Judged CommitSearch::judge_now(const std::string& hash, bool bad_end) {
  if (!worktree_) {
    worktree_.emplace(repository_);
    worktree_->start_bisect(question_.bad, {question_.good});
    for (const auto& [known, judged] : judged_) {
      worktree_->mark(known, judged.result.answer.verdict);
    }
  }
  worktree_->check_out(hash);
  progress_.doing("building");
  const Built built = build(question_.build, worktree_->path().string(), question_.artefact);
  Judged judged;
  judged.built = built.made;
  judged.build_seconds = built.seconds;
  judged.result.answer.reason = built.why;
  if (!built.made) return judged;
  const std::string artefact = (worktree_->path() / question_.artefact).string();
  std::int64_t runs = 0;
  const Repeater::Ask ask = [&] {
    progress_.doing(fmt::format("run {}", ++runs));
    return ask_once(artefact);
  };
  judged.result = bad_end ? repeater_.measure(ask) : repeater_.verdict(ask);
  return judged;
}

void CommitSearch::remember(const std::string& hash, const Judged& judged) {
  judged_[hash] = judged;
  if (worktree_) worktree_->mark(hash, judged.result.answer.verdict);
  if (hash == question_.bad || hash == question_.good) return;
  ++(judged.built ? result_.builds : result_.failed_builds);
}

Judged CommitSearch::judge(const std::string& hash, const std::string& why, int left,
                           bool bad_end) {
  const json* known = journal_.find(hash);
  progress_.begin(short_text(hash), left);
  Judged judged;
  if (known != nullptr) {
    judged = judged_from_json(*known);
    if (bad_end) repeater_.restore(judged.result, known->at("signatures"));
    result_.runs += judged.result.runs;
  } else {
    judged = judge_now(hash, bad_end);
    json answer = to_json(judged);
    if (bad_end) answer["signatures"] = repeater_.signatures();
    journal_.record(hash, std::move(answer), why);
  }
  remember(hash, judged);
  progress_.end();
  const Answer& answer = judged.result.answer;
  progress_.line(fmt::format("{}: {}{}{}{}", short_text(hash), name_of(answer.verdict),
                             answer.reason.empty() ? "" : ", ", answer.reason,
                             known != nullptr ? " (remembered)" : ""));
  return judged;
}

void CommitSearch::narrow(const Answer& failure) {
  if (!failure.failed.is_object()) return;
  Question& run = result_.run;
  const std::string which = failure.failed.at("case"), platform = failure.failed.at("platform");
  if (run.which == which && run.platform == platform) return;
  run.which = which;
  run.platform = platform;
  decide(fmt::format("the search is about {} on {}, the first that fails", which, platform));
}

void CommitSearch::judge_bad_end() {
  const Judged bad =
      judge(question_.bad, "it has to be bad", steps_left(result_.commits) + 2, true);
  const Answer& answer = bad.result.answer;
  if (answer.verdict == Verdict::good) {
    throw Undecided(fmt::format("the bad end {} is good: it passed {} of {} runs",
                                short_text(question_.bad), bad.result.runs, bad.result.runs));
  }
  if (answer.verdict == Verdict::cannot_say) {
    throw Undecided(
        fmt::format("the bad end {} cannot say: {}", short_text(question_.bad), answer.reason));
  }
  narrow(answer);
  result_.rate = repeater_.text();
  decide(result_.rate);
}

// The good end, or where the two histories part if the bad end does not come after it.
std::vector<std::string> CommitSearch::judge_good_ends() {
  std::vector<std::string> ends{question_.good};
  for (const std::string& base : repository_.merge_bases(question_.good, question_.bad)) {
    if (base != question_.good) ends.push_back(base);
  }
  for (const std::string& end : ends) {
    const bool asked = end == question_.good;
    const Answer answer = judge(end, asked ? "it has to be good" : "both ends come from it",
                                steps_left(result_.commits) + 1, false)
                              .result.answer;
    const std::string what = asked ? "the good end" : "where the two ends part,";
    if (answer.verdict == Verdict::bad) {
      throw Undecided(fmt::format("{} {} is bad: {}", what, short_text(end), answer.signature));
    }
    if (answer.verdict == Verdict::cannot_say) {
      throw Undecided(fmt::format("{} {} cannot say: {}", what, short_text(end), answer.reason));
    }
  }
  return ends;
}

// Arms that ran different things do not differ by a commit alone.
void CommitSearch::check_paths() {
  const auto path = [&](const std::string& hash) {
    return paths_of(judged_.at(hash).result.answer, result_.run);
  };
  const std::string ends = path_difference(path(question_.good), path(question_.bad));
  if (ends.empty()) return;
  result_.warnings.push_back("the two ends did not run the same: " + ends);
  decide(result_.warnings.back());
}

void CommitSearch::finish(const FirstBad& found) {
  for (const std::string& hash : repository_.range(found.bad, found.goods)) {
    result_.candidates.push_back(repository_.describe(hash));
    if (hash == found.bad) continue;
    result_.unjudged[hash] = judged_.at(hash).result.answer.reason;
  }
  result_.failure = judged_.at(found.bad).result.answer;
  const std::string here = diagnosis_of(result_.failure),
                    there = diagnosis_of(judged_.at(question_.bad).result.answer);
  if (without_numbers(here) != without_numbers(there)) {
    result_.warnings.push_back("at the bad end it looks otherwise: " + there);
  }
  if (worktree_) result_.git_bisect_log = worktree_->bisect_log();
  std::string text = result_.candidates.size() == 1 ? "first bad commit:" : "first bad is one of:";
  for (const Commit& commit : result_.candidates) text += " " + short_text(commit.hash);
  decide(text);
}

CommitsResult CommitSearch::run() {
  result_.commits =
      static_cast<std::int64_t>(repository_.range(question_.bad, {question_.good}).size());
  decide(fmt::format("{} commits between the ends", result_.commits));
  judge_bad_end();
  const std::vector<std::string> goods = judge_good_ends();
  check_paths();
  const FirstBad found = first_bad(
      question_.bad, goods,
      [&](const std::string& bad, const std::vector<std::string>& known) {
        return repository_.halving_order(bad, known);
      },
      [&](const std::string& hash, std::size_t left) {
        const std::string why = fmt::format("{} commits may have been the first bad one", left);
        return judge(hash, why, steps_left(left), false).result.answer.verdict;
      });
  finish(found);
  return result_;
}

}  // namespace plumb::bisect
