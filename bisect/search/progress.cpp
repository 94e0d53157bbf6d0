// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/progress.h"

#include <fmt/format.h>

#include <cstdio>

namespace plumb::bisect {

Progress::Progress(bool quiet)
    : quiet_(quiet), status_(!quiet), start_(std::chrono::steady_clock::now()) {}

void Progress::line(const std::string& text) {
  status_.clear();
  if (!quiet_) std::fputs((text + "\n").c_str(), stderr);
}

void Progress::begin(const std::string& what, int left) {
  what_ = what;
  left_ = left;
  doing("");
}

void Progress::doing(const std::string& what) {
  doing_ = what;
  show();
}

void Progress::end() {
  ++done_;
  status_.clear();
}

void Progress::show() {
  if (!status_.is_shown()) return;
  const std::chrono::duration<double> so_far = std::chrono::steady_clock::now() - start_;
  const std::string left =
      done_ == 0 ? "" : fmt::format(", {:.0f} s left", so_far.count() / done_ * left_);
  status_.show(fmt::format("[{} done, {} left{}] {} {}", done_, left_, left, what_, doing_));
}

}  // namespace plumb::bisect
