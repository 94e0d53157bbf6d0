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

// The original case runs until it has failed kFailures times. The search gives up after kTries runs
// without a failure. A candidate that is taken to pass by mistake leaves a larger result, not a
// wrong one, so kRisk may be larger than in a search for a commit.
constexpr std::int64_t kFailures = 8, kTries = 64;
constexpr double kRisk = 0.01;

// Words for plumb run that save time: goldens exist for the original case only, and the diagnosis
// is made once, at the end.
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

// The step of the first finding in a decode step's report.
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

// On a simulated device plumb's own kernels give the same result in every run.
bool CaseSearch::is_repeatable() const {
  return question_.run.platform.starts_with("sim-") && question_.run.plugin.empty();
}

// Compares failures by their kind only, because candidates have other case names.
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
  // Only a failure is remembered. A case without a verdict may have one later, after its problem is
  // fixed.
  if (first.verdict == Verdict::bad) {
    journal_.record(key,
                    {{"verdict", name_of(first.verdict)},
                     {"reason", first.kind},
                     {"seconds", first.seconds},
                     {"runs", measured_runs_},
                     {"failures", failures_},
                     {"answer", to_json(first)}},
                    "does the case fail, and how");
  }
  return first;
}

// Runs the original case and counts failures. The answer is that of the first failure.
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
  return fmt::format("failed in {} of {} runs; a case counts as passing after {} passes in a row",
                     failures_, measured_runs_, runs_);
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
  if (is_mostly_right(first_.failed) && is_all_wrong(one.failed)) {
    return {Seen::otherwise, "all rows are wrong", one.seconds};
  }
  const std::string look = look_of(one.failed);
  if (look_alike(look, look_of(first_.failed))) return {Seen::same, "", one.seconds};
  return {Seen::otherwise, look.empty() ? "other wrong values" : look, one.seconds};
}

void CaseSearch::heard(const Candidate& candidate, const Said& said, const std::string& why) {
  progress_.end();
  const std::string asked = key(candidate);
  if (!journal_.has(asked)) journal_.record(asked, journal_entry(said), why);
}

// Reports a smaller failing case in one line.
void CaseSearch::took(const Candidate& before, const Candidate& after, const std::string& why) {
  const auto shown = [](const std::string& word) { return word.empty() ? "default" : word; };
  std::string text;
  for (const auto& [name, value] : after) {
    if (value == before.at(name)) continue;
    text += fmt::format("{}{} {} instead of {}", text.empty() ? "" : ", ", name, shown(value),
                        shown(before.at(name)));
  }
  progress_.line(fmt::format("still fails with {}", text));
  journal_.note(fmt::format("still fails with {} ({})", text, why));
}

// If the failure names a point (the conditions of the failed run), tries that point alone. If it
// fails there too, candidates keep the point, and its parts become parameters to reduce.
void CaseSearch::name_point() {
  const std::string spec = first_.failed.value("point", "");
  if (spec.empty()) return;
  auto pointed = std::make_unique<CaseSubject>(which_, all_, question_.run);
  pointed->take_point(spec);
  std::swap(subject_, pointed);
  if (make_prober().fails(subject_->start(), "the failing point alone")) return;
  journal_.note("the case fails in another way at " + spec + " alone: points are not reduced");
  std::swap(subject_, pointed);
}

// Steps after the one that failed are probably not needed: guess that many steps.
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

// Runs the smallest case once more with its diagnosis. Throws Undecided if it no longer fails in
// the same way.
Answer CaseSearch::diagnosed(const Question& smallest) const {
  const Oracle oracle("/proc/self/exe", question_.timeout, {"--goldens", ""});
  Answer last;
  for (std::int64_t run = 0; run < 2 * runs_; ++run) {
    last = oracle.ask(smallest);
    if (last.verdict == Verdict::bad && last.kind == first_.kind) return last;
  }
  throw Undecided(fmt::format(
      "the smallest case failed with \"{}\" before, and now {}:{}", first_.kind,
      last.verdict == Verdict::bad ? "fails with \"" + last.kind + "\"" : name_of(last.verdict),
      options_text(smallest)));
}

CaseSearchResult CaseSearch::run() {
  const double start = seconds_now();
  progress_.begin("does the case fail, and how", 0);
  first_ = first_answer();
  if (first_.verdict == Verdict::good) {
    throw Undecided("the case passes: there is nothing to make smaller" +
                    options_text(question_.run));
  }
  if (first_.verdict == Verdict::cannot_say) {
    throw Undecided("the case could not run: " + first_.reason);
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
  progress_.begin("the smallest case again, with its diagnosis", 0);
  result.failure = diagnosed(result.smallest);
  result.rate = rate_text();
  result.seconds = seconds_now() - start;
  return result;
}

}  // namespace plumb::bisect
