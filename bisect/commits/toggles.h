// SPDX-License-Identifier: Apache-2.0
//
// Finds which toggles (named flags and variables of a build) make a case fail. Each culprit, a
// toggle or a group of toggles, is confirmed by a run.
#pragma once

#include <map>

#include "bisect/commits/environments.h"

namespace plumb::bisect {

struct ToggleResult {
  Culprits culprits;
  std::vector<Answer> failures;  // of each group of culprits alone
  Answer all_on;
  std::int64_t runs = 0, builds = 0;
  std::string rate;
  std::vector<std::string> warnings;
};

class ToggleSearch {
 public:
  // All references must outlive this object.
  ToggleSearch(const EnvironmentFile& file, Question run, std::int64_t repeat, double timeout,
               Journal& journal, Progress& progress);
  // Throws Undecided, Interrupted.
  ToggleResult run();
  // Judges the case without toggles, with each toggle alone, and with all, instead of searching.
  std::vector<std::pair<std::string, Judged>> judge_all();

 private:
  const Judged& judge(const Switches& on, const std::string& why);
  void judge_ends();

  const EnvironmentFile& file_;
  Judging judging_;
  Switches all_;
  std::map<Switches, Judged> judged_;
};

}  // namespace plumb::bisect
