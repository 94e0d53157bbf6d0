// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tests of plumb bisect commits on scripted repositories.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/bisect/scripted_repository.h"

namespace plumb::bisect {

using Files = ScriptedRepository::Files;

inline constexpr int kCommits = 64;

// A history: the first bad commit, commits that do not build, and in how many of five runs a bad
// commit fails.
struct Plan {
  int bad = 40;
  std::vector<int> broken = {};
  int of_five = 5;
  int commits = kCommits;
  bool is_broken(int i) const { return std::find(broken.begin(), broken.end(), i) != broken.end(); }
};

inline ScriptedRepository make(const Plan& plan) {
  return ScriptedRepository(plan.commits, [plan](int i) {
    Files files{{"plumb.in", stand_in(i >= plan.bad, plan.of_five)}, {"number", std::to_string(i)}};
    if (plan.is_broken(i)) files["broken"] = "";
    return files;
  });
}

// Command-line words for plumb bisect commits. `more` replaces or adds options.
inline std::vector<std::string> words(const ScriptedRepository& repository, int good, int bad,
                                      const std::map<std::string, std::string>& more = {}) {
  std::map<std::string, std::string> options{{"--case", "rms_norm/one_token/eager"},
                                             {"--platform", "sim-sm90"},
                                             {"--plumb", "plumb"},
                                             {"--state", repository.outside("state")},
                                             {"--build", build_command(repository)},
                                             {"--good", repository.hash(good)},
                                             {"--bad", repository.hash(bad)}};
  for (const auto& [option, value] : more) options[option] = value;
  std::vector<std::string> all{"commits"};
  for (const auto& [option, value] : options) all.insert(all.end(), {option, value});
  return all;
}

inline const std::map<std::string, std::string> kOnce{{"--repeat", "1"}};

inline Bisected run(const ScriptedRepository& repository, std::vector<std::string> all,
                    std::uint64_t dice = 1) {
  const std::string file = repository.outside("dice");
  std::ofstream(file) << dice << "\n";
  return plumb_bisect(repository, std::move(all), {"BISECT_TEST_DICE=" + file});
}

inline int builds(const ScriptedRepository& repository) {
  const std::string text = file_text(repository.outside("builds"));
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

// ceil(log2 64) + 1 commits, and both ends.
inline constexpr int kMostBuilds = 6 + 1 + 2;

}  // namespace plumb::bisect
