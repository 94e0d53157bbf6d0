// SPDX-License-Identifier: Apache-2.0
//
// Runs work on several threads and delivers the results in order.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "process/worker.h"

namespace plumb::process {

// Calls work(i) for each i below `count` on up to `threads` threads. Each thread makes its own
// `work` with make_work(). Calls take(i, result) on the calling thread, in the order of i.
//
// If `work` throws, no further call begins. The map waits for the calls that run, passes the
// finished results to `take` in order, and then throws the exception again. CannotStart ends one
// thread only: the other threads take over its index, and the map throws the exception if no thread
// is left.
template <class Result>
class OrderedMap {
 public:
  using Work = std::function<Result(std::size_t)>;
  using Take = std::function<void(std::size_t, Result&&)>;

  OrderedMap(std::size_t count, std::function<Work()> make_work)
      : make_work_(std::move(make_work)), results_(count) {
    for (std::size_t i = count; i > 0; --i) open_.push_back(i - 1);
  }

  void run(int threads, const Take& take) {
    start(std::min(static_cast<std::size_t>(std::max(threads, 1)), results_.size()));
    std::size_t next = 0;
    try {
      for (; next < results_.size() && wait_for(next); ++next) {
        take(next, std::move(*results_[next]));
      }
    } catch (...) {  // `take` threw
      stop(std::current_exception());
      next = results_.size();
    }
    threads_.clear();
    for (; next < results_.size(); ++next) {
      if (results_[next]) take(next, std::move(*results_[next]));
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void start(std::size_t threads) {
    for (std::size_t i = 0; i < threads; ++i) {
      const std::lock_guard lock(mutex_);
      try {
        threads_.emplace_back([this] { serve(); });
        ++running_;
      } catch (const std::system_error&) {  // no more threads: use those running
        if (running_ == 0) throw;
        return;
      }
    }
  }

  void serve() {
    try {
      const Work work = make_work_();
      while (const auto i = next()) {
        if (!finish(*i, work)) return;
      }
      leave();
    } catch (...) {
      stop(std::current_exception());
    }
  }

  std::optional<std::size_t> next() {
    std::unique_lock lock(mutex_);
    // A thread that ends may leave its index to this one.
    changed_.wait(lock, [&] { return failure_ || !open_.empty() || busy_ == 0; });
    if (failure_ || open_.empty()) return std::nullopt;
    ++busy_;
    const std::size_t i = open_.back();
    open_.pop_back();
    return i;
  }

  // Returns false if this thread must end (CannotStart).
  bool finish(std::size_t i, const Work& work) {
    std::exception_ptr cannot_start;
    std::optional<Result> result;
    try {
      result = work(i);
    } catch (const CannotStart&) {
      cannot_start = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    --busy_;
    changed_.notify_all();
    if (!cannot_start) {
      results_[i] = std::move(result);
      return true;
    }
    open_.push_back(i);
    if (--running_ == 0 && !failure_) failure_ = cannot_start;
    return false;
  }

  void leave() {
    const std::lock_guard lock(mutex_);
    --running_;
  }

  void stop(std::exception_ptr why) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(why);
    changed_.notify_all();
  }

  bool wait_for(std::size_t i) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return results_[i].has_value() || failure_; });
    return results_[i].has_value();
  }

  std::function<Work()> make_work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<Result>> results_;
  std::vector<std::size_t> open_;  // indices not taken by a thread; the next one is last
  std::size_t running_ = 0, busy_ = 0;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_;
};

// Runs an OrderedMap for work that has no state per thread.
template <class Result>
void ordered_map(std::size_t count, int threads, std::function<Result(std::size_t)> work,
                 const typename OrderedMap<Result>::Take& take) {
  OrderedMap<Result>(count, [&work] { return work; }).run(threads, take);
}

}  // namespace plumb::process
