// SPDX-License-Identifier: Apache-2.0
//
// What a search says while it goes on, on stderr: decisions as lines that stay, and on a terminal
// how many steps are done, how many are left and how long they take.
#pragma once

#include <chrono>
#include <string>

namespace plumb::bisect {

class Progress {
 public:
  explicit Progress(bool quiet = false);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void line(const std::string& text);             // a decision
  void begin(const std::string& what, int left);  // a step: what is asked, steps left with it
  void doing(const std::string& what);            // within the step: building, run 3 of 17
  void end();

 private:
  void show();
  void clear() const;

  bool quiet_, terminal_;
  int done_ = 0, left_ = 0;
  std::string what_, doing_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace plumb::bisect
