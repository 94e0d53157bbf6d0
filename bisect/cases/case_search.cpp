// SPDX-License-Identifier: Apache-2.0
#include "bisect/cases/case_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "bisect/search/repetition.h"
#include "bisect/search/search.h"
#include "bisect/search/signature.h"

namespace plumb::bisect {

namespace {

using nlohmann::json;

// The case as it was is run until it has failed so often, and given up after so many runs without a
// failure. A candidate that is wrongly taken to pass leaves the result larger, and not wrong: the
// risk of each may be larger than where a commit is accused.
constexpr std::int64_t kFailures = 8, kTries = 64;
constexpr double kRisk = 0.01;

// A golden is of one case alone, and what a failure looks like is said at the end.
std::vector<std::string> quick_words(int jobs) {
  return {"--goldens", "", "--no-diagnosis", "--jobs", fmt::to_string(jobs)};
}

json journal_entry(const Said& said) {
  return {{"verdict", name_of(said.seen)}, {"reason", said.reason}, {"seconds", said.seconds}};
}

Said from_journal(const json& entry) {
  Said said{Seen::cannot_say, entry.at("reason"), entry.at("seconds")};
  for (const Seen seen : {Seen::same, Seen::otherwise, Seen::passes}) {
    if (entry.at("verdict") == name_of(seen)) said.seen = seen;
  }
  return said;
}

// Steps that the watch of a decode step took until it found something.
std::optional<std::int64_t> failing_step(const Answer& answer) {
  const json findings = answer.failed.value("findings", json::array());
  if (findings.empty() || !findings[0].contains("step")) return std::nullopt;
  return findings[0]["step"].get<std::int64_t>();
}

}  // namespace

json to_json(const CaseQuestion& question) {
  return {
      {"run", to_json(question.run)}, {"repeat", question.repeat}, {"timeout", question.timeout}};
}

CaseSearch::CaseSearch(CaseQuestion question, const cases::AnyCase& which,
                       const std::vector<cases::AnyCase>& all, Journal& journal, Progress& progress)
    : question_(std::move(question)),
      which_(which),
      all_(all),
      journal_(journal),
      progress_(progress) {}

// plumb's own kernels do the same every time on a simulated device.
bool CaseSearch::is_repeatable() const {
  return question_.run.platform.starts_with("sim-") && question_.run.plugin.empty();
}

// The kind alone says whether two failures are the same: a case in another scenario has another
// name.
Answer CaseSearch::answer(const Question& question) const {
  const Oracle oracle("/proc/self/exe", question_.timeout, quick_words(question_.jobs));
  Answer answer = oracle.ask(question);
  answer.signature = answer.kind;
  return answer;
}

Answer CaseSearch::first_answer() {
  const std::string key = "start";
  const auto remembered = journal_.find(key, [&](const json& known) {
    failures_ = known.at("failures");
    measured_runs_ = known.at("runs");
    return answer_from_json(known.at("answer"));
  });
  if (remembered) return *remembered;
  const Answer first = measure();
  // Only what decides is kept: a case that cannot say may be able to, once it has been mended.
  if (first.verdict == Verdict::bad) {
    journal_.record(key,
                    {{"verdict", name_of(first.verdict)},
                     {"reason", first.kind},
                     {"seconds", first.seconds},
                     {"runs", measured_runs_},
                     {"failures", failures_},
                     {"answer", to_json(first)}},
                    "does it fail at all, and how");
  }
  return first;
}

// The first failure stands for all.
Answer CaseSearch::measure() {
  Answer first;
  const std::int64_t wanted = is_repeatable() || question_.repeat > 0 ? 1 : kFailures;
  const std::int64_t tries = is_repeatable() ? 1 : std::max(kTries, question_.repeat);
  while (failures_ < wanted && measured_runs_ < tries * std::max<std::int64_t>(failures_, 1)) {
    const Answer one = answer(question_.run);
    ++measured_runs_;
    if (failures_ == 0) first = one;
    if (one.verdict == Verdict::cannot_say && failures_ == 0) return one;
    failures_ += one.verdict == Verdict::bad;
  }
  return first;
}

void CaseSearch::settle_runs() {
  if (is_repeatable()) return;
  runs_ = question_.repeat > 0
              ? question_.repeat
              : runs_until_good(least_rate(failures_, measured_runs_, kRisk), 1, kRisk);
}

std::string CaseSearch::rate_text() const {
  if (is_repeatable()) return "";
  return fmt::format("failed in {} of {} runs; a case passes after {} runs that pass", failures_,
                     measured_runs_, runs_);
}

std::string CaseSearch::key(const Candidate& candidate) const {
  return "plumb run" + options_text(subject_->question(candidate));
}

Said CaseSearch::said(const Candidate& candidate) const {
  if (const auto known = journal_.find(key(candidate), from_journal)) return *known;
  const Question question = subject_->question(candidate);
  Answer one;
  for (std::int64_t run = 0; run < runs_; ++run) {
    one = answer(question);
    if (one.verdict != Verdict::good) break;
  }
  if (one.verdict == Verdict::good) return {Seen::passes, "", one.seconds};
  if (one.verdict == Verdict::cannot_say) return {Seen::cannot_say, one.reason, one.seconds};
  if (one.kind != first_.kind) return {Seen::otherwise, one.kind, one.seconds};
  const std::string look = look_of(one.failed);
  if (look_alike(look, look_of(first_.failed))) return {Seen::same, "", one.seconds};
  return {Seen::otherwise, look.empty() ? "other wrong values" : look, one.seconds};
}

void CaseSearch::heard(const Candidate& candidate, const Said& said, const std::string& why) {
  progress_.end();
  const std::string asked = key(candidate);
  if (!journal_.has(asked)) journal_.record(asked, journal_entry(said), why);
}

// Each decision, in a line.
void CaseSearch::took(const Candidate& before, const Candidate& after, const std::string& why) {
  const auto shown = [](const std::string& word) { return word.empty() ? "default" : word; };
  std::string text;
  for (const auto& [name, value] : after) {
    if (value == before.at(name)) continue;
    text += fmt::format("{}{} {} for {}", text.empty() ? "" : ", ", name, shown(value),
                        shown(before.at(name)));
  }
  progress_.line(fmt::format("still fails with {}", text));
  journal_.note(fmt::format("still fails with {} ({})", text, why));
}

// A candidate says at which point it runs, if the failure does.
void CaseSearch::name_point() {
  const std::string spec = first_.failed.value("point", "");
  if (spec.empty()) return;
  auto pointed = std::make_unique<CaseSubject>(which_, all_, question_.run);
  pointed->take_point(spec);
  std::swap(subject_, pointed);
  if (make_prober().fails(subject_->start(), "the point at which it fails, alone")) return;
  journal_.note("it does not fail in the same way at " + spec + " alone: points stay as they are");
  std::swap(subject_, pointed);
}

// Later steps than the one that fails are not needed.
void CaseSearch::guess_steps() {
  const auto step = failing_step(first_);
  const Candidate& start = subject_->start();
  if (!step || !start.contains("steps")) return;
  Candidate guess = start;
  guess["steps"] = fmt::to_string(*step + 1);
  if (guess != start) subject_->guess(std::move(guess));
}

Prober CaseSearch::make_prober() {
  return Prober({.ask = [this](const Candidate& one) { return said(one); },
                 .is_possible = [this](const Candidate& one) { return subject_->is_possible(one); },
                 .asking = [this](const std::string& why, int left) { progress_.begin(why, left); },
                 .heard = [this](const Candidate& one, const Said& what,
                                 const std::string& why) { heard(one, what, why); },
                 .took = [this](const Candidate& before, const Candidate& after,
                                const std::string& why) { took(before, after, why); },
                 .jobs = question_.jobs,
                 .seconds = question_.seconds});
}

// What the failure looks like; and that it is there.
Answer CaseSearch::diagnosed(const Question& smallest) const {
  const Oracle oracle("/proc/self/exe", question_.timeout, {"--goldens", ""});
  Answer last;
  for (std::int64_t run = 0; run < 2 * runs_; ++run) {
    last = oracle.ask(smallest);
    if (last.verdict == Verdict::bad && last.kind == first_.kind) return last;
  }
  throw Undecided(fmt::format(
      "lost: the smallest case failed as \"{}\", and now {}:{}", first_.kind,
      last.verdict == Verdict::bad ? "fails as \"" + last.kind + "\"" : name_of(last.verdict),
      options_text(smallest)));
}

CaseSearchResult CaseSearch::run() {
  const double start = seconds_now();
  progress_.begin("does it fail at all, and how", 0);
  first_ = first_answer();
  if (first_.verdict == Verdict::good) {
    throw Undecided("the case passes: there is nothing to make smaller" +
                    options_text(question_.run));
  }
  if (first_.verdict == Verdict::cannot_say) {
    throw Undecided("the case does not fail, it cannot say: " + first_.reason);
  }
  if (first_.kind.empty()) throw Undecided("the report does not say how the case fails");
  settle_runs();
  journal_.note("fails: " + first_.kind);
  progress_.line("fails: " + first_.kind);
  subject_ = std::make_unique<CaseSubject>(which_, all_, question_.run);
  name_point();
  guess_steps();
  Prober prober = make_prober();
  prober.remember(subject_->start(), {Seen::same, "", first_.seconds});
  CaseSearchResult result;
  result.shrunk = shrink(subject_->start(), subject_->subject(), prober);
  result.first = question_.run;
  result.smallest = subject_->question(result.shrunk.smallest);
  result.first_size = subject_->size(subject_->start());
  result.size = subject_->size(result.shrunk.smallest);
  if (const Neighbour* passing = result.shrunk.passing()) {
    result.passing = subject_->question(passing->candidate);
  }
  result.probes = prober.asked();
  progress_.begin("the smallest once more, with its diagnosis", 0);
  result.failure = diagnosed(result.smallest);
  result.rate = rate_text();
  result.seconds = seconds_now() - start;
  return result;
}

}  // namespace plumb::bisect
