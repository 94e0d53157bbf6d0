// SPDX-License-Identifier: Apache-2.0
#include "bisect/subject.h"

#include <fmt/format.h>

#include <filesystem>

#include "bisect/build.h"

namespace plumb::bisect {

namespace {

using nlohmann::json;

constexpr const char* kThisPlumb = "/proc/self/exe";

}  // namespace

json to_json(const Judged& judged) {
  json all = to_json(judged.result.answer);
  all["runs"] = judged.result.runs;
  all["failures"] = judged.result.failures;
  all["built"] = judged.built;
  all["build_seconds"] = judged.build_seconds;
  return all;
}

Judged judged_from_json(const json& from) {
  return {{answer_from_json(from), from.at("runs"), from.at("failures")},
          from.at("built"),
          from.at("build_seconds")};
}

Judged judge(const Subject& subject, const Question& asked, double timeout,
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
  const Oracle oracle(other ? artefact : kThisPlumb, timeout);
  std::int64_t runs = 0;
  judged.result = repeat([&] {
    progress.doing(fmt::format("run {}", ++runs));
    return oracle.ask(question, subject.variables);
  });
  return judged;
}

}  // namespace plumb::bisect
