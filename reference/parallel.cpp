// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "reference/bound.h"

namespace plumb::reference {

namespace {
std::atomic<int> thread_count{0};  // 0: one thread per core of the machine
thread_local bool inside = false;  // true on threads that run a body of parallel_for

int threads_to_use() {
  const int set = thread_count.load();
  return set > 0 ? set : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}
}  // namespace

void set_thread_count(int threads) { thread_count = threads; }

void parallel_for(std::int64_t count, std::int64_t smallest_piece,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& body) {
  if (count <= 0) return;
  const std::int64_t pieces =
      std::min<std::int64_t>(threads_to_use(), count / std::max<std::int64_t>(smallest_piece, 1));
  if (inside || pieces <= 1) return body(0, count);

  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&](std::int64_t piece) {
    inside = true;
    try {
      body(count * piece / pieces, count * (piece + 1) / pieces);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
    inside = false;
  };
  std::vector<std::thread> others;
  for (std::int64_t piece = 1; piece < pieces; ++piece) others.emplace_back(run, piece);
  run(0);
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace plumb::reference
