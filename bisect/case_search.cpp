// SPDX-License-Identifier: Apache-2.0
#include "bisect/case_search.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "bisect/search.h"

namespace plumb::bisect {

namespace {

using nlohmann::json;

// Answers of one search at most, for the chance that one of them is wrong.
constexpr std::int64_t kVerdicts = 1000;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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

CaseSearch::CaseSearch(CaseQuestion question, const cases::Case& which,
                       const std::vector<cases::Case>& all, Journal& journal, Progress& progress)
    : question_(std::move(question)),
      which_(which),
      all_(all),
      journal_(journal),
      progress_(progress),
      flaky_(!question_.run.platform.starts_with("sim-")),
      repeater_(kVerdicts, question_.repeat) {}

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
  if (const json* known = journal_.find(key)) {
    Repeated measured{answer_from_json(known->at("answer")), known->at("runs"),
                      known->at("failures")};
    repeater_.restore(measured, {measured.answer.kind});
    return measured.answer;
  }
  Repeated measured{{}, 1, 0};
  if (flaky_) {
    measured = repeater_.measure([&] { return answer(question_.run); });
  } else {
    measured.answer = answer(question_.run);
    measured.failures = measured.answer.verdict == Verdict::bad;
  }
  // Only what decides is kept: a case that cannot say may be able to, once it has been mended.
  if (measured.failures > 0) {
    journal_.record(key,
                    {{"verdict", name_of(measured.answer.verdict)},
                     {"reason", measured.answer.kind},
                     {"seconds", measured.answer.seconds},
                     {"runs", measured.runs},
                     {"failures", measured.failures},
                     {"answer", to_json(measured.answer)}},
                    "does it fail at all, and how");
  }
  return measured.answer;
}

std::string CaseSearch::key(const Candidate& candidate) const {
  return "plumb run" + options_text(subject_->question(candidate));
}

Said CaseSearch::said(const Candidate& candidate) const {
  if (const json* known = journal_.find(key(candidate))) return from_journal(*known);
  const Question question = subject_->question(candidate);
  Answer one;
  if (flaky_) {
    one = repeater_.verdict([&] { return answer(question); }).answer;
  } else {
    one = answer(question);
  }
  if (one.verdict == Verdict::good) return {Seen::passes, "", one.seconds};
  if (one.verdict == Verdict::cannot_say) return {Seen::cannot_say, one.reason, one.seconds};
  if (one.kind == first_.kind) return {Seen::same, "", one.seconds};
  return {Seen::otherwise, one.kind, one.seconds};
}

void CaseSearch::heard(const Candidate& candidate, const Said& said, const std::string& why) {
  progress_.end();
  const std::string asked = key(candidate);
  if (journal_.find(asked) == nullptr) journal_.record(asked, journal_entry(said), why);
  progress_.begin(why, 0);
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
                 .heard = [this](const Candidate& one, const Said& what,
                                 const std::string& why) { heard(one, what, why); },
                 .took = [this](const Candidate& before, const Candidate& after,
                                const std::string& why) { took(before, after, why); },
                 .jobs = question_.jobs,
                 .seconds = question_.seconds});
}

CaseResult CaseSearch::run() {
  const double start = now();
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
  journal_.note("fails: " + first_.kind);
  progress_.line("fails: " + first_.kind);
  subject_ = std::make_unique<CaseSubject>(which_, all_, question_.run);
  name_point();
  guess_steps();
  Prober prober = make_prober();
  prober.remember(subject_->start(), {Seen::same, "", first_.seconds});
  CaseResult result;
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
  result.failure =
      Oracle("/proc/self/exe", question_.timeout, {"--goldens", ""}).ask(result.smallest);
  if (!flaky_ && result.failure.kind != first_.kind) {
    throw Undecided(fmt::format("lost: the smallest case fails once as \"{}\" and then as \"{}\"",
                                first_.kind, result.failure.kind));
  }
  if (flaky_) result.rate = repeater_.text();
  result.seconds = now() - start;
  return result;
}

}  // namespace plumb::bisect
