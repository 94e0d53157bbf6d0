// SPDX-License-Identifier: Apache-2.0
//
// One subject to judge: what is built where, and where plumb gets the kernels from.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bisect/search/progress.h"
#include "bisect/search/repetition.h"

namespace plumb::bisect {

struct Subject {
  std::string folder;  // where the build runs; relative paths start here
  std::string build;   // shell command; "": nothing is built
  // File that the build makes: a plumb, or a plug-in for this plumb; "": this plumb is judged.
  std::string artefact;
  bool is_plugin = false;
  std::vector<std::string> variables;  // NAME=value, for build and run
};

struct Judged {
  Repeated result;
  bool built = false;
  double build_seconds = 0;
};
nlohmann::json to_json(const Judged& judged);
Judged judged_from_json(const nlohmann::json& json);

// Builds the subject and runs the question as often as `repeat` asks. `runs`: upper limit for the
// progress line; 0: unknown. A subject that does not build gets the verdict cannot_say. Throws
// Interrupted.
Judged judge(const Subject& subject, const Question& question, double timeout, std::int64_t runs,
             const std::function<Repeated(const Repeater::Ask&)>& repeat, Progress& progress);

}  // namespace plumb::bisect
