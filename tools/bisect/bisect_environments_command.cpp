// SPDX-License-Identifier: Apache-2.0
//
// plumb bisect environments: searches the environment since which a case fails, or all toggles that
// make it fail.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bisect/commits/toggles.h"
#include "process/shell.h"
#include "tools/bisect/bisect_arguments.h"
#include "tools/output.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using bisect::BuildEnvironment;
using bisect::EnvironmentFile;
using bisect::Judged;
using bisect::SequenceResult;
using bisect::ToggleResult;
using bisect::Verdict;
using nlohmann::ordered_json;

using Table = std::vector<std::pair<std::string, Judged>>;

EnvironmentFile read_environments(const std::string& path) {
  try {
    return bisect::parse_environments(read_file(path), path);
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

// Whether this program judges in one of the environments.
bool judges_here(const EnvironmentFile& file) {
  const auto here = [](const BuildEnvironment& one) {
    return one.is_plugin || one.artefact.empty();
  };
  return here(file.common) || std::any_of(file.environments.begin(), file.environments.end(), here);
}

std::string reproduce_line(const EnvironmentFile& file, const BuildEnvironment& environment,
                           bisect::Question run) {
  const bisect::Subject subject = subject_of(file, environment);
  std::string text = "cd " + process::shell_quoted(file.folder) + " && ";
  for (const std::string& variable : subject.variables) {
    text += "export " + process::shell_quoted(variable) + " && ";
  }
  if (!subject.build.empty()) text += as_one_command(subject.build) + " && ";
  if (subject.is_plugin) run.plugin = subject.artefact;
  const bool other = !subject.is_plugin && !subject.artefact.empty();
  return text + (other ? as_program(subject.artefact) : "plumb") + " run" + options_text(run);
}

std::string warnings_text(const std::vector<std::string>& warnings) {
  std::string text;
  for (const std::string& warning : warnings) text += "    note: " + warning + "\n";
  return text;
}

const BuildEnvironment& find(const EnvironmentFile& file, const std::string& name) {
  return *std::find_if(file.environments.begin(), file.environments.end(),
                       [&](const BuildEnvironment& one) { return one.name == name; });
}

std::string report_text(const EnvironmentFile& file, const SequenceResult& result) {
  std::string text;
  if (result.candidates.size() == 1) {
    text = "first bad environment: " + result.candidates.front() + "\n\n";
  } else {
    text = fmt::format("the first bad environment is one of {}:\n", result.candidates.size());
    for (const std::string& name : result.candidates) {
      const auto why = result.unjudged.find(name);
      text += fmt::format("    {}: {}\n", name,
                          why == result.unjudged.end() ? "bad" : "cannot say, " + why->second);
    }
    text += "\n";
  }
  text += failure_text(result.failure) + warnings_text(result.warnings);
  text +=
      "    reproduce: " + reproduce_line(file, find(file, result.candidates.back()), result.run) +
      "\n\n";
  return text + fmt::format("{} environments, {} judged in addition to the two ends, {} runs; {}\n",
                            file.environments.size(), result.builds + result.failed_builds,
                            result.runs, result.rate);
}

ordered_json search_sequence(const BisectEnvironmentsArguments& arguments,
                             const EnvironmentFile& file, bisect::Journal& journal,
                             bisect::Progress& progress) {
  const BisectSearchArguments& search = arguments.search;
  bisect::EnvironmentSequence sequence(file);
  bisect::SequenceSearch searched(sequence, search.run, search.repeat, search.timeout, journal,
                                  progress);
  const SequenceResult result = searched.run();
  put(report_text(file, result));
  ordered_json json{{"first_bad", nullptr}, {"candidates", result.candidates}};
  if (result.candidates.size() == 1) json["first_bad"] = result.candidates.front();
  json["unjudged"] = result.unjudged;
  json.update(common_json(result));
  json["reproduce"] = reproduce_line(file, find(file, result.candidates.back()), result.run);
  return json;
}

std::string names_of(const EnvironmentFile& file, const bisect::Switches& on) {
  return combine(file, on).name;
}

std::string others_text(const EnvironmentFile& file, const bisect::Culprits& culprits) {
  if (culprits.others.empty()) return "there are no other toggles\n";
  const std::string names = names_of(file, culprits.others);
  if (culprits.of_others == Verdict::good) return "all others together pass: " + names + "\n";
  return "all others together cannot say: " + names + "\n";
}

std::string report_text(const EnvironmentFile& file, const ToggleResult& result,
                        const bisect::Question& run) {
  std::string text;
  for (std::size_t i = 0; i < result.culprits.groups.size(); ++i) {
    const bisect::Switches& group = result.culprits.groups[i];
    text += fmt::format("culprit: {}{}\n", names_of(file, group),
                        group.size() > 1 ? " (only together)" : " (alone makes it fail)");
    text += "    " + failure_text(result.failures[i]) +
            "    reproduce: " + reproduce_line(file, combine(file, group), run) + "\n";
  }
  text += others_text(file, result.culprits) + warnings_text(result.warnings);
  if (result.culprits.unsaid > 0) {
    text += fmt::format("note: {} combinations could not say, and count as passed\n",
                        result.culprits.unsaid);
  }
  return text + fmt::format("{} toggles, {} builds, {} runs; {}\n", file.toggles.size(),
                            result.builds, result.runs, result.rate);
}

ordered_json search_toggles(const BisectEnvironmentsArguments& arguments,
                            const EnvironmentFile& file, bisect::Journal& journal,
                            bisect::Progress& progress) {
  const BisectSearchArguments& search = arguments.search;
  const ToggleResult result =
      bisect::ToggleSearch(file, search.run, search.repeat, search.timeout, journal, progress)
          .run();
  put(report_text(file, result, search.run));
  ordered_json json{{"culprits", ordered_json::array()}};
  for (std::size_t i = 0; i < result.culprits.groups.size(); ++i) {
    ordered_json names = ordered_json::array();
    for (const std::size_t toggle : result.culprits.groups[i]) {
      names.push_back(file.toggles[toggle].name);
    }
    json["culprits"].push_back(
        {{"toggles", names},
         {"failure", to_json(result.failures[i])},
         {"reproduce",
          reproduce_line(file, combine(file, result.culprits.groups[i]), search.run)}});
  }
  json["others_together"] = name_of(result.culprits.of_others);
  json["combinations_that_cannot_say"] = result.culprits.unsaid;
  json["builds"] = result.builds;
  json["runs"] = result.runs;
  json["rate"] = result.rate;
  json["warnings"] = result.warnings;
  return json;
}

Table judge_all(const BisectEnvironmentsArguments& arguments, const EnvironmentFile& file,
                bisect::Journal& journal, bisect::Progress& progress) {
  const BisectSearchArguments& search = arguments.search;
  if (!file.toggles.empty()) {
    return bisect::ToggleSearch(file, search.run, search.repeat, search.timeout, journal, progress)
        .judge_all();
  }
  bisect::EnvironmentSequence sequence(file);
  const std::vector<std::string> names = sequence.keys();
  const std::vector<Judged> judged =
      bisect::SequenceSearch(sequence, search.run, search.repeat, search.timeout, journal, progress)
          .judge_all(names);
  Table table;
  for (std::size_t i = 0; i < names.size(); ++i) table.emplace_back(names[i], judged[i]);
  return table;
}

// Whether no good environment comes after a bad one.
bool is_monotone(const Table& table) {
  bool bad = false, back = false;
  for (const auto& [name, judged] : table) {
    back = back || (bad && judged.result.answer.verdict == Verdict::good);
    bad = bad || judged.result.answer.verdict == Verdict::bad;
  }
  return !back;
}

ordered_json report_all(const EnvironmentFile& file, const Table& table) {
  ordered_json json;
  for (const auto& [name, judged] : table) {
    const bisect::Answer& answer = judged.result.answer;
    const std::string why = answer.verdict == Verdict::bad ? answer.kind : answer.reason;
    put(fmt::format("{:<10} {}{}{}\n", name_of(answer.verdict), name, why.empty() ? "" : ": ",
                    why));
    json["all"].push_back({{"name", name}, {"verdict", name_of(answer.verdict)}, {"why", why}});
  }
  if (file.toggles.empty()) {
    json["monotone"] = is_monotone(table);
    if (!is_monotone(table)) {
      put("not monotone: a good environment comes after a bad one, so none is the first bad one\n");
    }
  }
  return json;
}

}  // namespace

int bisect_environments_command(const BisectEnvironmentsArguments& arguments) {
  const EnvironmentFile file = read_environments(arguments.file);
  check_search(arguments.search, judges_here(file));
  nlohmann::json question = to_json(arguments.search.run);
  question["environments"] = to_json(file);
  question["repeat"] = arguments.search.repeat;
  question["timeout"] = arguments.search.timeout;
  question["all"] = arguments.all;
  bisect::Progress progress(arguments.search.quiet);
  const auto journal = open_journal(arguments.search, "bisect environments", question, progress);
  return run_search(arguments.search, *journal, [&] {
    ordered_json json{{"schema", 1}, {"command", "bisect environments"}, {"question", question}};
    if (arguments.all) {
      json.update(report_all(file, judge_all(arguments, file, *journal, progress)));
    } else if (file.toggles.empty()) {
      json.update(search_sequence(arguments, file, *journal, progress));
    } else {
      json.update(search_toggles(arguments, file, *journal, progress));
    }
    return json;
  });
}

}  // namespace plumb::tools
