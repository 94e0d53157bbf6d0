// SPDX-License-Identifier: Apache-2.0
//
// One thing to judge: what is built where, and how plumb comes to its kernels.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bisect/search/progress.h"
#include "bisect/search/repetition.h"

namespace plumb::bisect {

struct Subject {
  std::string folder;    // where the build runs, and where relative paths begin
  std::string build;     // a shell command; "": nothing is built
  std::string artefact;  // what it makes: plumb, or a plug-in for this one; "": this plumb alone
  bool is_plugin = false;
  std::vector<std::string> variables;  // NAME=value, of build and run
};

struct Judged {
  Repeated result;
  bool built = false;
  double build_seconds = 0;
};
nlohmann::json to_json(const Judged& judged);
Judged judged_from_json(const nlohmann::json& json);

// Builds it and asks as often as `repeat` wants: `runs` times at most, says the progress line, or
// nobody knows (0). What does not build cannot say. Throws Interrupted.
Judged judge(const Subject& subject, const Question& question, double timeout, std::int64_t runs,
             const std::function<Repeated(const Repeater::Ask&)>& repeat, Progress& progress);

}  // namespace plumb::bisect
