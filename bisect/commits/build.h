// SPDX-License-Identifier: Apache-2.0
//
// A build as somebody else writes it: a shell command that makes one file.
#pragma once

#include <string>
#include <vector>

namespace plumb::bisect {

struct Built {
  bool made = false;
  std::string why;  // it was not: "does not build: …"
  double seconds = 0;
};

// Runs the command in the folder, with these variables. The file is removed before, so that none is
// judged that an earlier build has left. A build that a signal ended, or that ends with 128 or
// more, has been stopped and says nothing: throws Interrupted.
Built build(const std::string& command, const std::string& folder, const std::string& file,
            const std::vector<std::string>& environment = {});

// Throws std::invalid_argument, in one line, if the path leads out of the folder that it belongs
// to.
void require_inside(const std::string& path);

}  // namespace plumb::bisect
