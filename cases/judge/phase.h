// SPDX-License-Identifier: Apache-2.0
//
// Measures where the time of a case goes. Times are only reported; no decision depends on them.
#pragma once

#include <chrono>

namespace plumb::cases {

// Adds the time of its scope to a counter.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Time of one verdict: computing the reference, and comparing with the reference.
struct VerdictSeconds {
  double reference = 0, judge = 0;
};

}  // namespace plumb::cases
