// SPDX-License-Identifier: Apache-2.0
//
// plumb bisect commits: the commit since which a case fails.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "bisect/build.h"
#include "bisect/commits.h"
#include "tools/bisect_arguments.h"
#include "tools/output.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using bisect::Commit;
using bisect::CommitsQuestion;
using bisect::CommitsResult;
using nlohmann::ordered_json;

constexpr const char* kUsualProgram = "build/sim/bin/plumb";

CommitsQuestion question_of(const BisectCommitsArguments& arguments) {
  CommitsQuestion question;
  question.run = arguments.search.run;
  question.repository = arguments.repository;
  question.build = arguments.build;
  question.is_plugin = !arguments.plugin.empty();
  question.artefact = question.is_plugin        ? arguments.plugin
                      : arguments.plumb.empty() ? kUsualProgram
                                                : arguments.plumb;
  question.repeat = arguments.search.repeat;
  question.timeout = arguments.search.timeout;
  try {
    bisect::require_inside(question.artefact);
  } catch (const std::invalid_argument& error) {
    throw UsageError(
        fmt::format("{}: {}", question.is_plugin ? "--plugin" : "--plumb", error.what()));
  }
  return question;
}

// The ends as hashes, in an order that makes sense.
void resolve_ends(const bisect::Repository& repository, const BisectCommitsArguments& arguments,
                  CommitsQuestion& question) {
  question.good = repository.resolve(arguments.good);
  question.bad = repository.resolve(arguments.bad);
  if (question.good == question.bad) throw UsageError("--good and --bad are the same commit");
  const std::vector<std::string> bases = repository.merge_bases(question.good, question.bad);
  if (bases.empty()) throw UsageError("--good and --bad have no commit in common");
  if (std::find(bases.begin(), bases.end(), question.bad) != bases.end()) {
    throw UsageError("--good comes after --bad: what is looked for is where it begins to fail");
  }
}

std::string reproduce_line(const CommitsQuestion& question, const CommitsResult& result) {
  std::string text;
  if (question.repository != ".") {
    text = "cd " + bisect::shell_quoted(question.repository) + " && ";
  }
  text += fmt::format("git checkout {} && {} && ", result.candidates.back().hash,
                      as_one_command(question.build));
  bisect::Question run = result.run;
  if (question.is_plugin) run.plugin = question.artefact;
  return text + (question.is_plugin ? "plumb" : bisect::shell_quoted(question.artefact)) + " run" +
         options_text(run);
}

std::string commit_text(const Commit& commit) {
  return fmt::format("{}\n    {}\n    {}, {}\n", commit.hash, commit.subject, commit.author,
                     commit.date);
}

std::string report_text(const CommitsQuestion& question, const CommitsResult& result) {
  std::string text;
  if (result.candidates.size() == 1) {
    text = "first bad commit: " + commit_text(result.candidates.front());
  } else {
    text = fmt::format("the first bad commit is one of these {}:\n", result.candidates.size());
    for (const Commit& commit : result.candidates) {
      text += commit_text(commit);
      const auto why = result.unjudged.find(commit.hash);
      text += why == result.unjudged.end() ? "    bad\n" : "    cannot say: " + why->second + "\n";
    }
  }
  text += "\n" + failure_text(result.failure);
  for (const std::string& warning : result.warnings) text += "    note: " + warning + "\n";
  text += "    reproduce: " + reproduce_line(question, result) + "\n\n";
  return text +
         fmt::format("{} commits, {} builds beside the two ends, {} that failed, {} runs; {}\n",
                     result.commits, result.builds, result.failed_builds, result.runs, result.rate);
}

ordered_json to_json(const Commit& commit) {
  return {{"hash", commit.hash},
          {"subject", commit.subject},
          {"author", commit.author},
          {"date", commit.date}};
}

ordered_json to_json(const CommitsQuestion& question, const CommitsResult& result) {
  ordered_json json{{"schema", 1}, {"command", "bisect commits"}, {"question", to_json(question)}};
  const bool one = result.candidates.size() == 1;
  json["first_bad"] = one ? to_json(result.candidates.front()) : ordered_json(nullptr);
  for (const Commit& commit : result.candidates) {
    ordered_json entry = to_json(commit);
    const auto why = result.unjudged.find(commit.hash);
    entry["verdict"] = why == result.unjudged.end() ? "bad" : "cannot say";
    if (why != result.unjudged.end()) entry["reason"] = why->second;
    json["candidates"].push_back(entry);
  }
  json["failure"] = to_json(result.failure);
  json["reproduce"] = reproduce_line(question, result);
  json["commits"] = result.commits;
  json["builds"] = result.builds;
  json["failed_builds"] = result.failed_builds;
  json["runs"] = result.runs;
  json["rate"] = result.rate;
  json["warnings"] = result.warnings;
  json["git_bisect_log"] = result.git_bisect_log;
  return json;
}

}  // namespace

int bisect_commits_command(const BisectCommitsArguments& arguments) {
  CommitsQuestion question = question_of(arguments);
  check_search(arguments.search, question.is_plugin);
  const bisect::Repository repository(arguments.repository);
  resolve_ends(repository, arguments, question);
  bisect::Progress progress(arguments.search.quiet);
  const auto journal =
      open_journal(arguments.search, "bisect commits", to_json(question), progress);
  return run_search(arguments.search, *journal, [&] {
    bisect::CommitSearch search(question, repository, *journal, progress);
    const CommitsResult result = search.run();
    put(report_text(question, result));
    return to_json(question, result);
  });
}

}  // namespace plumb::tools
