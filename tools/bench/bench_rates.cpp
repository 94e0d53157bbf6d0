// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/bench_rates.h"

#include <algorithm>
#include <cmath>

#include "reference/eigen_setup.h"
#include "reference/exp_array.h"

namespace plumb::tools {

namespace {

constexpr std::int64_t kCopied = 1 << 22;  // doubles: 32 MiB, more than the caches hold
constexpr std::int64_t kEdge = 192;        // rows and columns of the matrices
constexpr std::int64_t kNumbers = 1 << 15;
constexpr int kTimes = 4;

}  // namespace

double Rates::seconds_of_operations(const cases::ReferenceWork& work) const {
  return 2 * work.multiply_adds / operations + work.exps / exps + work.logs / logs +
         work.rsqrts / rsqrts;
}

double Rates::floor(const cases::ReferenceWork& work) const {
  return std::max(seconds_of_bytes(work), seconds_of_operations(work));
}

RateTasks::RateTasks()
    : from_(kCopied, 1),
      to_(kCopied),
      numbers_(kNumbers),
      results_(kNumbers),
      left_(Eigen::MatrixXd::Random(kEdge, kEdge)),
      right_(Eigen::MatrixXd::Random(kEdge, kEdge)),
      product_(kEdge, kEdge) {
  for (std::int64_t i = 0; i < kNumbers; ++i) {
    numbers_[i] = 0.5 + static_cast<double>(i) / static_cast<double>(kNumbers);
  }
}

std::vector<std::function<void()>> RateTasks::tasks() {
  return {[this] { copy(); }, [this] { multiply(); }, [this] { exp(); }, [this] { log(); },
          [this] { rsqrt(); }};
}

Rates RateTasks::rates(const std::vector<double>& seconds) {
  constexpr double kEvaluated = double{kTimes} * kNumbers;
  return {2.0 * sizeof(double) * kCopied / seconds[0],
          2.0 * kTimes * kEdge * kEdge * kEdge / seconds[1], kEvaluated / seconds[2],
          kEvaluated / seconds[3], kEvaluated / seconds[4]};
}

void RateTasks::copy() { std::copy(from_.begin(), from_.end(), to_.begin()); }

void RateTasks::multiply() {
  reference::fix_eigen_blocking();
  for (int i = 0; i < kTimes; ++i) product_.noalias() = left_ * right_;
}

void RateTasks::exp() {
  for (int i = 0; i < kTimes; ++i) {
    results_ = numbers_;
    reference::exp_in_place(results_.data(), kNumbers);
  }
}

void RateTasks::log() {
  for (int i = 0; i < kTimes; ++i) {
    for (std::int64_t k = 0; k < kNumbers; ++k) results_[k] = std::log(numbers_[k]);
  }
}

void RateTasks::rsqrt() {
  for (int i = 0; i < kTimes; ++i) {
    for (std::int64_t k = 0; k < kNumbers; ++k) results_[k] = 1 / std::sqrt(numbers_[k]);
  }
}

}  // namespace plumb::tools
