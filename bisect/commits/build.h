// SPDX-License-Identifier: Apache-2.0
//
// Runs a user's build: a shell command that makes one file.
#pragma once

#include <string>
#include <vector>

namespace plumb::bisect {

struct Built {
  bool made = false;
  std::string why;  // if not made: "does not build: …"
  double seconds = 0;
};

// A build that takes longer does not build. A shorter limit is part of the command: timeout 600
// make.
inline constexpr double kLongestBuild = 4 * 3600;  // seconds

// Runs the command in the folder with these variables. The file is removed first, so that the
// result of an earlier build is never judged. A build that ends by a signal, or with a code of 128
// or more, was stopped from outside: throws Interrupted. `longest`: seconds.
Built build(const std::string& command, const std::string& folder, const std::string& file,
            const std::vector<std::string>& environment = {}, double longest = kLongestBuild);

// Throws std::invalid_argument (one line) if the path leads out of the folder that it is relative
// to.
void require_inside(const std::string& path);

}  // namespace plumb::bisect
