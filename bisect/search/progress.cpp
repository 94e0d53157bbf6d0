// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace plumb::bisect {

namespace {

constexpr std::size_t kWidth = 79;  // a longer line would wrap and stay

}  // namespace

Progress::Progress(bool quiet)
    : quiet_(quiet),
      terminal_(!quiet && isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() { clear(); }

void Progress::clear() const {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

void Progress::line(const std::string& text) {
  clear();
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
  clear();
}

void Progress::show() {
  if (!terminal_) return;
  const std::chrono::duration<double> so_far = std::chrono::steady_clock::now() - start_;
  const std::string left =
      done_ == 0 ? "" : fmt::format(", {:.0f} s left", so_far.count() / done_ * left_);
  const std::string line =
      fmt::format("[{} done, {} left{}] {} {}", done_, left_, left, what_, doing_);
  clear();
  std::fputs(line.substr(0, kWidth).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace plumb::bisect
