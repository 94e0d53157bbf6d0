// SPDX-License-Identifier: Apache-2.0
//
// Output of a search on stderr: decisions as permanent lines, and on a terminal a status line with
// finished steps, remaining steps and the time that they take.
#pragma once

#include <chrono>
#include <string>

#include "process/terminal.h"

namespace plumb::bisect {

class Progress {
 public:
  explicit Progress(bool quiet = false);

  void line(const std::string& text);  // prints a decision
  // Starts a step: what is asked, and the remaining steps including this one.
  void begin(const std::string& what, int left);
  void doing(const std::string& what);  // activity within the step: building, run 3 of 17
  void end();

 private:
  void show();

  bool quiet_;
  process::StatusLine status_;
  int done_ = 0, left_ = 0;
  std::string what_, doing_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace plumb::bisect
