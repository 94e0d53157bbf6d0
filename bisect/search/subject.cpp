// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/subject.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "bisect/commits/build.h"

namespace plumb::bisect {

namespace {

using nlohmann::json;

constexpr const char* kThisPlumb = "/proc/self/exe";

}  // namespace

json to_json(const Judged& judged) {
  json all = to_json(judged.result.answer);
  all["runs"] = judged.result.runs;
  all["failures"] = judged.result.failures;
  all["seconds"] = judged.result.seconds + judged.build_seconds;
  all["built"] = judged.built;
  all["build_seconds"] = judged.build_seconds;
  return all;
}

Judged judged_from_json(const json& from) {
  const double build = from.at("build_seconds"), all = from.at("seconds");
  return {{answer_from_json(from), from.at("runs"), from.at("failures"), all - build},
          from.at("built"),
          build};
}

Judged judge(const Subject& subject, const Question& asked, double timeout, std::int64_t runs,
             const std::function<Repeated(const Repeater::Ask&)>& repeat, Progress& progress) {
  Judged judged;
  if (!subject.build.empty()) {
    progress.doing("building");
    const Built built = build(subject.build, subject.folder, subject.artefact, subject.variables);
    judged.built = built.made;
    judged.build_seconds = built.seconds;
    judged.result.answer.reason = built.why;
    if (!built.made) return judged;
  }
  const std::string artefact = std::filesystem::path(subject.folder) / subject.artefact;
  Question question = asked;
  if (subject.is_plugin) question.plugin = artefact;
  const bool other = !subject.is_plugin && !subject.artefact.empty();
  const std::string program = other ? artefact : kThisPlumb;
  // The diagnosis is made for one failing run only.
  const Oracle oracle(program, timeout), brief(program, timeout, {"--no-diagnosis"});
  bool knows_brief = true, failed = false;
  std::int64_t run = 0;
  judged.result = repeat([&] {
    progress.doing(fmt::format("run {}{}", ++run, runs > 0 ? fmt::format(" of {}", runs) : ""));
    if (failed && knows_brief) {
      const Answer answer = brief.ask(question, subject.variables);
      knows_brief = !answer.usage;  // false: an older plumb lacks the option
      if (knows_brief) return answer;
    }
    Answer answer = oracle.ask(question, subject.variables);
    failed = failed || answer.verdict == Verdict::bad;
    return answer;
  });
  // Removed, because the reproduce line names a temporary folder.
  json& entry = judged.result.answer.failed;
  if (entry.is_object()) entry.erase("reproduce");
  return judged;
}

}  // namespace plumb::bisect
