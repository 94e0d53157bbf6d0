// SPDX-License-Identifier: Apache-2.0
//
// The point in time at which a wait ends.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace plumb::process {

class Deadline {
 public:
  static Deadline never() { return Deadline(Clock::time_point::max()); }
  // seconds <= 0: never.
  static Deadline in(double seconds) {
    if (!(seconds > 0)) return never();
    constexpr double kLongest = 1e9;  // seconds; larger values overflow the clock
    const std::chrono::duration<double> wait(std::min(seconds, kLongest));
    return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(wait));
  }

  bool is_over() const { return at_ != Clock::time_point::max() && Clock::now() >= at_; }
  Deadline or_earlier(Deadline other) const { return Deadline(std::min(at_, other.at_)); }
  // Remaining milliseconds, rounded up, at most `most`: a timeout for poll.
  int milliseconds(int most) const {
    if (at_ == Clock::time_point::max()) return most;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, most));
  }

 private:
  using Clock = std::chrono::steady_clock;
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

}  // namespace plumb::process
