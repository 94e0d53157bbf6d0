// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/sequence.h"

#include <fmt/format.h>

#include <stdexcept>

#include "bisect/search/signature.h"

namespace plumb::bisect {

namespace {

// Beside one good answer per step: the good ends.
std::int64_t most_goods_of_commits(std::size_t candidates) { return steps_left(candidates) + 3; }

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

// At an end: a question that is refused has no answer anywhere.
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
  const Judged bad = judge(key, "it has to be bad", length_);
  const Answer& answer = bad.result.answer;
  require_accepted(answer, text);
  if (answer.verdict == Verdict::good) {
    throw Undecided(fmt::format(
        "the bad end {} is good: it passed all of {} runs (--repeat asks for another number)", text,
        bad.result.runs));
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
        judge(end, asked ? "it has to be good" : "both ends come from it", length_).result.answer;
    const std::string what = asked ? "the good end" : "where the two ends part,";
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

// Arms that ran different things do not differ by what is searched alone.
void SequenceSearch::check_path(const std::string& key, const std::string& what) {
  const auto path = [&](const std::string& of) {
    return paths_of(judged_.at(of).result.answer, judging_.run());
  };
  const std::string difference = path_difference(path(sequence_.good_ends().front()), path(key));
  if (difference.empty()) return;
  result_.warnings.push_back(what + " did not run the same as the good end: " + difference);
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
  if (without_numbers(here) != without_numbers(there)) {
    result_.warnings.push_back("at the bad end it looks otherwise: " + there);
  }
  const bool one = result_.candidates.size() == 1;
  std::string text = one ? "the first bad one is" : "it is one of";
  for (const std::string& key : result_.candidates) text += " " + sequence_.text(key);
  judging_.decide(text);
  const std::string good = found.goods.back();
  if (good != sequence_.good_ends().back()) check_path(good, sequence_.text(good));
}

SequenceResult SequenceSearch::run() {
  const std::string bad_end = sequence_.bad_end();
  judging_.decide(fmt::format("{} of them may have been the first bad one", length_));
  judge_bad_end();
  const std::vector<std::string> goods = judge_good_ends();
  check_path(bad_end, "the bad end");
  const FirstBad found = first_bad(
      bad_end, goods,
      [&](const std::string& bad, const std::vector<std::string>& known) {
        return sequence_.halving_order(bad, known);
      },
      [&](const std::string& key, std::size_t left) {
        const std::string why = fmt::format("{} may have been the first bad one", left);
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
  judge(sequence_.bad_end(), "the rate of its failure is wanted", length_);
  std::vector<Judged> all;
  for (const std::string& key : keys) {
    const bool known = judged_.contains(key);
    all.push_back(known ? judged_.at(key) : judge(key, "all of them are asked", keys.size()));
  }
  return all;
}

}  // namespace plumb::bisect
