// SPDX-License-Identifier: Apache-2.0
//
// plumb bisect commits: searches the commit since which a case fails.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bisect/commits/build.h"
#include "bisect/commits/commits.h"
#include "device/plain_line.h"
#include "process/shell.h"
#include "tools/bisect/bisect_arguments.h"
#include "tools/output.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

using bisect::Commit;
using bisect::CommitsQuestion;
using bisect::SequenceResult;
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

// Resolves both ends to hashes, and checks that good does not come after bad.
void resolve_ends(const bisect::Repository& repository, const BisectCommitsArguments& arguments,
                  CommitsQuestion& question) {
  question.good = repository.resolve(arguments.good);
  question.bad = repository.resolve(arguments.bad);
  if (question.good == question.bad) throw UsageError("--good and --bad are the same commit");
  const std::vector<std::string> bases = repository.merge_bases(question.good, question.bad);
  if (bases.empty()) throw UsageError("--good and --bad have no common ancestor");
  if (std::find(bases.begin(), bases.end(), question.bad) != bases.end()) {
    throw UsageError("--good comes after --bad: the good commit has to be the older one");
  }
}

std::string reproduce_line(const CommitsQuestion& question, const SequenceResult& result) {
  std::string text;
  if (question.repository != ".") {
    text = "cd " + process::shell_quoted(question.repository) + " && ";
  }
  text += fmt::format("git checkout {} && {} && ", result.candidates.back(),
                      as_one_command(question.build));
  bisect::Question run = result.run;
  if (question.is_plugin) run.plugin = question.artefact;
  return text + (question.is_plugin ? "plumb" : as_program(question.artefact)) + " run" +
         options_text(run);
}

// A candidate commit. If there are several, with its verdict.
std::string candidate_text(const Commit& commit, const SequenceResult& result) {
  std::string text =
      fmt::format("{}\n    {}\n    {}, {}\n", commit.hash, device::plain_line(commit.subject),
                  device::plain_line(commit.author), commit.date);
  if (result.candidates.size() == 1) return text;
  const auto why = result.unjudged.find(commit.hash);
  return text +
         (why == result.unjudged.end() ? "    bad\n" : "    cannot say: " + why->second + "\n");
}

std::string report_text(const CommitsQuestion& question, const SequenceResult& result,
                        const std::vector<Commit>& candidates) {
  std::string text = candidates.size() == 1
                         ? "first bad commit: "
                         : fmt::format("the first bad commit is one of {}:\n", candidates.size());
  for (const Commit& commit : candidates) text += candidate_text(commit, result);
  text += "\n" + failure_text(result.failure);
  for (const std::string& warning : result.warnings) text += "    note: " + warning + "\n";
  text += "    reproduce: " + reproduce_line(question, result) + "\n\n";
  return text +
         fmt::format(
             "{} commits, {} builds in addition to the two ends, {} failed builds, {} runs; {}\n",
             result.length, result.builds, result.failed_builds, result.runs, result.rate);
}

ordered_json to_json(const Commit& commit, const SequenceResult& result) {
  const auto why = result.unjudged.find(commit.hash);
  ordered_json json{{"hash", commit.hash},
                    {"subject", commit.subject},
                    {"author", commit.author},
                    {"date", commit.date},
                    {"verdict", why == result.unjudged.end() ? "bad" : "cannot say"}};
  if (why != result.unjudged.end()) json["reason"] = why->second;
  return json;
}

ordered_json to_json(const CommitsQuestion& question, const SequenceResult& result,
                     const std::vector<Commit>& candidates) {
  ordered_json json{{"schema", 1}, {"command", "bisect commits"}, {"question", to_json(question)}};
  json["first_bad"] =
      candidates.size() == 1 ? to_json(candidates.front(), result) : ordered_json(nullptr);
  for (const Commit& commit : candidates) json["candidates"].push_back(to_json(commit, result));
  json["commits"] = result.length;
  json.update(common_json(result));
  json["reproduce"] = reproduce_line(question, result);
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
    bisect::CommitSequence sequence(question, repository);
    bisect::SequenceSearch search(sequence, question.run, question.repeat, question.timeout,
                                  *journal, progress);
    const SequenceResult result = search.run();
    std::vector<Commit> candidates;
    for (const std::string& hash : result.candidates) {
      candidates.push_back(repository.describe(hash));
    }
    put(report_text(question, result, candidates));
    ordered_json json = to_json(question, result, candidates);
    json["git_bisect_log"] = sequence.git_bisect_log();
    return json;
  });
}

}  // namespace plumb::tools
