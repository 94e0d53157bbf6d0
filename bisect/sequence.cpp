// SPDX-License-Identifier: Apache-2.0
#include "bisect/sequence.h"

#include <fmt/format.h>

#include <algorithm>

#include "bisect/signature.h"

namespace plumb::bisect {

namespace {

using nlohmann::json;

// Beside one good answer per step: the good ends.
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

SequenceSearch::SequenceSearch(Sequence& sequence, Question run, std::int64_t repeat,
                               double timeout, Journal& journal, Progress& progress)
    : sequence_(sequence),
      timeout_(timeout),
      journal_(journal),
      progress_(progress),
      repeater_(most_goods(sequence.range(sequence.bad_end(), sequence.good_ends()).size()),
                repeat) {
  result_.run = std::move(run);
}

void SequenceSearch::decide(const std::string& text) {
  journal_.note(text);
  progress_.line(text);
}

Judged SequenceSearch::judge_now(const std::string& key, bool bad_end) {
  const auto repeat = [&](const Repeater::Ask& ask) {
    return bad_end ? repeater_.measure(ask) : repeater_.verdict(ask);
  };
  return bisect::judge(sequence_.prepare(key), result_.run, timeout_, repeat, progress_);
}

void SequenceSearch::count(const std::string& key, const Judged& judged) {
  judged_[key] = judged;
  result_.runs += judged.result.runs;
  sequence_.note(key, judged.result.answer.verdict);
  if (key == sequence_.bad_end() || key == sequence_.good_ends().front()) return;
  ++(judged.built ? result_.builds : result_.failed_builds);
}

Judged SequenceSearch::judge(const std::string& key, const std::string& why, int left,
                             bool bad_end) {
  const json* known = journal_.find(key);
  progress_.begin(sequence_.text(key), left);
  Judged judged;
  if (known != nullptr) {
    judged = judged_from_json(*known);
    if (bad_end) repeater_.restore(judged.result, known->at("signatures"));
  } else {
    judged = judge_now(key, bad_end);
    json answer = to_json(judged);
    if (bad_end) answer["signatures"] = repeater_.signatures();
    journal_.record(key, std::move(answer), why);
  }
  count(key, judged);
  progress_.end();
  const Answer& answer = judged.result.answer;
  progress_.line(fmt::format("{}: {}{}{}{}", sequence_.text(key), name_of(answer.verdict),
                             answer.reason.empty() ? "" : ", ", answer.reason,
                             known != nullptr ? " (remembered)" : ""));
  return judged;
}

void SequenceSearch::narrow(const Answer& failure) {
  if (!failure.failed.is_object()) return;
  Question& run = result_.run;
  const std::string which = failure.failed.at("case"), platform = failure.failed.at("platform");
  if (run.which == which && run.platform == platform) return;
  run.which = which;
  run.platform = platform;
  decide(fmt::format("the search is about {} on {}, the first that fails", which, platform));
}

void SequenceSearch::judge_bad_end() {
  const std::string key = sequence_.bad_end(), text = sequence_.text(key);
  const Judged bad = judge(key, "it has to be bad",
                           steps_left(static_cast<std::size_t>(result_.length)) + 2, true);
  const Answer& answer = bad.result.answer;
  if (answer.verdict == Verdict::good) {
    throw Undecided(
        fmt::format("the bad end {} is good: it passed all of {} runs", text, bad.result.runs));
  }
  if (answer.verdict == Verdict::cannot_say) {
    throw Undecided(fmt::format("the bad end {} cannot say: {}", text, answer.reason));
  }
  narrow(answer);
  result_.rate = repeater_.text();
  decide(result_.rate);
}

std::vector<std::string> SequenceSearch::judge_good_ends() {
  const std::vector<std::string> ends = sequence_.good_ends();
  for (const std::string& end : ends) {
    const bool asked = end == ends.front();
    const Answer answer = judge(end, asked ? "it has to be good" : "both ends come from it",
                                steps_left(static_cast<std::size_t>(result_.length)) + 1)
                              .result.answer;
    const std::string what = asked ? "the good end" : "where the two ends part,";
    const std::string text = sequence_.text(end);
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
void SequenceSearch::check_paths() {
  const auto path = [&](const std::string& key) {
    return paths_of(judged_.at(key).result.answer, result_.run);
  };
  const std::string ends =
      path_difference(path(sequence_.good_ends().front()), path(sequence_.bad_end()));
  if (ends.empty()) return;
  result_.warnings.push_back("the two ends did not run the same: " + ends);
  decide(result_.warnings.back());
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
  std::string text = result_.candidates.size() == 1 ? "the first bad one is" : "it is one of";
  for (const std::string& key : result_.candidates) text += " " + sequence_.text(key);
  decide(text);
}

SequenceResult SequenceSearch::run() {
  const std::string bad_end = sequence_.bad_end();
  result_.length =
      static_cast<std::int64_t>(sequence_.range(bad_end, sequence_.good_ends()).size());
  decide(fmt::format("{} of them may have been the first bad one", result_.length));
  judge_bad_end();
  const std::vector<std::string> goods = judge_good_ends();
  check_paths();
  const FirstBad found = first_bad(
      bad_end, goods,
      [&](const std::string& bad, const std::vector<std::string>& known) {
        return sequence_.halving_order(bad, known);
      },
      [&](const std::string& key, std::size_t left) {
        const std::string why = fmt::format("{} may have been the first bad one", left);
        return judge(key, why, steps_left(left)).result.answer.verdict;
      });
  finish(found);
  return result_;
}

}  // namespace plumb::bisect
