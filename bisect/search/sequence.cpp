// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/sequence.h"

#include <fmt/format.h>

#include <stdexcept>

#include "cases/judge/line_kind.h"

namespace plumb::bisect {

namespace {

// Upper limit of good answers in a search: one per step, and the good ends.
std::int64_t most_goods_of_commits(std::size_t candidates) { return steps_left(candidates) + 3; }

std::string diagnosis_of(const Answer& answer) {
  return answer.failed.is_object() ? answer.failed.value("diagnosis", "") : "";
}

// Paths of the case to which the search was limited.
std::vector<Path> paths_of(const Answer& answer, const Question& question) {
  std::vector<Path> paths;
  for (const Path& path : answer.paths) {
    if (path.which == question.which && path.platform == question.platform) paths.push_back(path);
  }
  return paths;
}

// Throws if plumb refused the question at an end of the sequence: it would refuse it everywhere.
void require_accepted(const Answer& answer, const std::string& text) {
  if (!answer.usage) return;
  throw std::runtime_error(fmt::format("{} refuses the question: {}", text, answer.reason));
}

}  // namespace

SequenceSearch::SequenceSearch(Sequence& sequence, Question run, std::int64_t repeat,
                               double timeout, Journal& journal, Progress& progress)
    : sequence_(sequence),
      judging_(
          std::move(run), timeout,
          most_goods_of_commits(sequence.range(sequence.bad_end(), sequence.good_ends()).size()),
          repeat, journal, progress),
      length_(sequence.range(sequence.bad_end(), sequence.good_ends()).size()) {}

void SequenceSearch::count(const std::string& key, const Judged& judged) {
  judged_[key] = judged;
  sequence_.note(key, judged.result.answer.verdict);
  if (key == sequence_.bad_end() || key == sequence_.good_ends().front()) return;
  ++(judged.built ? result_.builds : result_.failed_builds);
}

Judged SequenceSearch::judge(const std::string& key, const std::string& why,
                             std::size_t candidates) {
  const bool bad_end = key == sequence_.bad_end(), good_end = key == sequence_.good_ends().front();
  const int left = steps_left(candidates) + (bad_end ? 2 : good_end ? 1 : 0);
  const Judging::Asked asked{key, sequence_.text(key), why, left,
                             [&] { return sequence_.prepare(key); }};
  Judged judged = bad_end ? judging_.measure(asked) : judging_.ask(asked);
  count(key, judged);
  return judged;
}

void SequenceSearch::judge_bad_end() {
  const std::string key = sequence_.bad_end(), text = sequence_.text(key);
  const Judged bad = judge(key, "the bad end has to be bad", length_);
  const Answer& answer = bad.result.answer;
  require_accepted(answer, text);
  if (answer.verdict == Verdict::good) {
    throw Undecided(
        fmt::format("the bad end {} is good: all {} runs passed (--repeat sets the number of runs)",
                    text, bad.result.runs));
  }
  if (answer.verdict == Verdict::cannot_say) {
    throw Undecided(fmt::format("the bad end {} cannot say: {}", text, answer.reason));
  }
  judging_.narrow(answer);
}

std::vector<std::string> SequenceSearch::judge_good_ends() {
  const std::vector<std::string> ends = sequence_.good_ends();
  for (const std::string& end : ends) {
    const bool asked = end == ends.front();
    const Answer answer =
        judge(end,
              asked ? "the good end has to be good" : "the merge base of both ends has to be good",
              length_)
            .result.answer;
    const std::string what = asked ? "the good end" : "the merge base of both ends";
    const std::string text = sequence_.text(end);
    require_accepted(answer, text);
    if (answer.verdict == Verdict::bad) {
      throw Undecided(fmt::format("{} {} is bad: {}", what, text, answer.signature));
    }
    if (answer.verdict == Verdict::cannot_say) {
      throw Undecided(fmt::format("{} {} cannot say: {}", what, text, answer.reason));
    }
  }
  return ends;
}

// Warns if a subject ran other work than the good end: the difference between them may then have
// another cause than the one searched for.
void SequenceSearch::check_path(const std::string& key, const std::string& what) {
  const auto path = [&](const std::string& of) {
    return paths_of(judged_.at(of).result.answer, judging_.run());
  };
  const std::string difference = path_difference(path(sequence_.good_ends().front()), path(key));
  if (difference.empty()) return;
  result_.warnings.push_back(what + " did other work than the good end: " + difference);
  judging_.decide(result_.warnings.back());
}

void SequenceSearch::finish(const FirstBad& found) {
  result_.candidates = sequence_.range(found.bad, found.goods);
  for (const std::string& key : result_.candidates) {
    if (key != found.bad) result_.unjudged[key] = judged_.at(key).result.answer.reason;
  }
  result_.failure = judged_.at(found.bad).result.answer;
  const std::string here = diagnosis_of(result_.failure),
                    there = diagnosis_of(judged_.at(sequence_.bad_end()).result.answer);
  if (cases::without_numbers(here) != cases::without_numbers(there)) {
    result_.warnings.push_back("the failure at the bad end looks different: " + there);
  }
  const bool one = result_.candidates.size() == 1;
  std::string text = one ? "first bad:" : "first bad, one of:";
  for (const std::string& key : result_.candidates) text += " " + sequence_.text(key);
  judging_.decide(text);
  const std::string good = found.goods.back();
  if (good != sequence_.good_ends().back()) check_path(good, sequence_.text(good));
}

SequenceResult SequenceSearch::run() {
  const std::string bad_end = sequence_.bad_end();
  judging_.decide(fmt::format("{} candidates for the first bad one", length_));
  judge_bad_end();
  const std::vector<std::string> goods = judge_good_ends();
  check_path(bad_end, "the bad end");
  const FirstBad found = first_bad(
      bad_end, goods,
      [&](const std::string& bad, const std::vector<std::string>& known) {
        return sequence_.halving_order(bad, known);
      },
      [&](const std::string& key, std::size_t left) {
        const std::string why = fmt::format("{} candidates left", left);
        return judge(key, why, left).result.answer.verdict;
      });
  finish(found);
  result_.run = judging_.run();
  result_.length = static_cast<std::int64_t>(length_);
  result_.runs = judging_.runs();
  result_.rate = judging_.rate();
  return result_;
}

std::vector<Judged> SequenceSearch::judge_all(const std::vector<std::string>& keys) {
  judging_.accept_any_failure();
  judge(sequence_.bad_end(), "measures the failure rate", length_);
  std::vector<Judged> all;
  for (const std::string& key : keys) {
    const bool known = judged_.contains(key);
    all.push_back(known ? judged_.at(key) : judge(key, "--all judges each of them", keys.size()));
  }
  return all;
}

}  // namespace plumb::bisect
