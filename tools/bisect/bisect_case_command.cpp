// SPDX-License-Identifier: Apache-2.0
//
// plumb bisect case: searches the smallest case that fails in the same way.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "bisect/cases/case_search.h"
#include "tools/bisect/bisect_arguments.h"
#include "tools/output.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using bisect::CaseQuestion;
using bisect::CaseSearchResult;
using bisect::Neighbour;
using nlohmann::ordered_json;

// The single case that the question selects, with its settings.
cases::AnyCase one_case(const bisect::Question& run) {
  Selection selection;
  selection.patterns = {run.which};
  selection.settings = run.settings;
  selection.case_files = run.case_files;
  selection.own_ops = run.own_ops;
  SelectedAny selected = select_any(selection, kinds_of(run));
  if (selected.cases.size() == 1) return selected.cases.front();
  throw UsageError(fmt::format("{} matches {} cases, such as {} and {}: bisect case takes one",
                               run.which, selected.cases.size(), selected.cases[0].id(),
                               selected.cases[1].id()));
}

// All cases of the op, in all tiers and without settings.
std::vector<cases::AnyCase> cases_of_op(const bisect::Question& run, const cases::AnyCase& which) {
  Selection selection;
  selection.ops = {std::string(which.op())};
  selection.case_files = run.case_files;
  selection.own_ops = run.own_ops;
  selection.tier = "full";
  return select_any(selection, kinds_of(run)).cases;
}

// Platform of the question, or else the first simulated one on which the case fails.
std::string platform_of(const BisectSearchArguments& arguments) {
  if (!arguments.run.platform.empty()) return arguments.run.platform;
  for (const std::string& platform : choose_platforms({})) {
    bisect::Question run = arguments.run;
    run.platform = platform;
    const bisect::Oracle oracle("/proc/self/exe", arguments.timeout,
                                {"--goldens", "", "--no-diagnosis"});
    if (oracle.ask(run).verdict == bisect::Verdict::bad) return platform;
  }
  return choose_platforms({}).front();
}

CaseQuestion question_of(const BisectCaseArguments& arguments, const cases::AnyCase& which) {
  CaseQuestion question;
  question.run = arguments.search.run;
  question.run.which = which.id();
  question.run.platform = platform_of(arguments.search);
  question.repeat = arguments.search.repeat;
  question.timeout = arguments.search.timeout;
  question.seconds = arguments.seconds;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const bool simulated = question.run.platform.starts_with("sim-");
  question.jobs = arguments.jobs > 0 ? arguments.jobs : simulated ? cores : 1;
  return question;
}

std::string line_of(const bisect::Question& question) {
  return "plumb run" + options_text(question);
}

std::vector<Neighbour> what_matters(const bisect::Shrunk& shrunk) {
  std::vector<Neighbour> all = shrunk.neighbours;
  all.insert(all.end(), shrunk.needed_plain.begin(), shrunk.needed_plain.end());
  return all;
}

std::string shown(const std::string& value) { return value.empty() ? "default" : value; }

// The other parameters that a neighbour changes.
std::map<std::string, std::string> changed_too(const Neighbour& one, const bisect::Shrunk& shrunk) {
  std::map<std::string, std::string> changed;
  for (const auto& [name, value] : one.candidate) {
    if (name != one.knob && value != shrunk.smallest.at(name)) changed[name] = value;
  }
  return changed;
}

std::string neighbours_text(const bisect::Shrunk& shrunk) {
  std::string text;
  for (const Neighbour& one : what_matters(shrunk)) {
    text += fmt::format("    {} {}: with {}", one.knob, shown(shrunk.smallest.at(one.knob)),
                        shown(one.value));
    for (const auto& [name, value] : changed_too(one, shrunk)) {
      text += fmt::format(" and {} {}", name, shown(value));
    }
    text += fmt::format(" it {}{}\n", name_of(one.said.seen),
                        one.said.reason.empty() ? "" : " (" + one.said.reason + ")");
  }
  return text.empty() ? "    nothing: no other value of a parameter passes\n" : text;
}

std::string report_text(const CaseSearchResult& result) {
  std::string text = "smallest failing case";
  if (result.size) {
    text += fmt::format(", {} of {}", result.size->text(), result.first_size->text());
  }
  text += ":\n    " + line_of(result.smallest) + "\n\n" + failure_text(result.failure) + "\n";
  text += result.passing ? "closest case that passes:\n    " + line_of(*result.passing) + "\n"
                         : "no close case passes\n";
  text += "matters:\n" + neighbours_text(result.shrunk);
  if (!result.shrunk.irrelevant.empty()) {
    text += fmt::format("does not matter: {}\n", fmt::join(result.shrunk.irrelevant, ", "));
  }
  if (!result.shrunk.complete) {
    text += "the time ran out: smaller cases may exist (the same command continues the search)\n";
  }
  if (!result.rate.empty()) text += result.rate + "\n";
  return text + fmt::format("\n{} runs in {:.1f} s\n", result.probes, result.seconds);
}

ordered_json to_json(const Neighbour& one, const bisect::Shrunk& shrunk) {
  ordered_json json{{"parameter", one.knob},
                    {"value", one.value},
                    {"verdict", name_of(one.said.seen)},
                    {"reason", one.said.reason}};
  const auto others = changed_too(one, shrunk);
  if (!others.empty()) json["together_with"] = others;
  return json;
}

ordered_json to_json(const CaseQuestion& question, const CaseSearchResult& result) {
  ordered_json json{{"schema", 1}, {"command", "bisect case"}, {"question", to_json(question)}};
  json["smallest"] = to_json(result.smallest);
  json["reproduce"] = line_of(result.smallest);
  if (result.size) {
    json["requests"] = result.size->requests;
    json["steps"] = result.size->steps;
  }
  json["parameters"] = result.shrunk.smallest;
  json["failure"] = to_json(result.failure);
  json["passes"] = result.passing ? ordered_json(line_of(*result.passing)) : ordered_json(nullptr);
  json["matters"] = ordered_json::array();
  for (const Neighbour& one : what_matters(result.shrunk)) {
    json["matters"].push_back(to_json(one, result.shrunk));
  }
  json["does_not_matter"] = result.shrunk.irrelevant;
  json["complete"] = result.shrunk.complete;
  json["runs"] = result.probes;
  json["seconds"] = result.seconds;
  return json;
}

}  // namespace

int bisect_case_command(const BisectCaseArguments& arguments) {
  check_search(arguments.search, true);
  const cases::AnyCase which = one_case(arguments.search.run);
  const std::vector<cases::AnyCase> all = cases_of_op(arguments.search.run, which);
  const CaseQuestion question = question_of(arguments, which);
  bisect::Progress progress(arguments.search.quiet);
  nlohmann::json asked = to_json(question);
  asked["files"] = digests_of(question.run);
  const auto journal = open_journal(arguments.search, "bisect case", asked, progress);
  return run_search(arguments.search, *journal, [&] {
    bisect::CaseSearch search(question, which, all, *journal, progress);
    const CaseSearchResult result = search.run();
    progress.line("");  // separates decisions and report on a terminal
    put(report_text(result));
    return to_json(question, result);
  });
}

}  // namespace plumb::tools
