// SPDX-License-Identifier: Apache-2.0
#include "process/fork.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace plumb::process {

namespace {

std::atomic<int> forks_here = 0;

class ForkingThread {
 public:
  ForkingThread() : owner_(getpid()) {
    // Blocks all signals in this thread, so that the program's own threads receive them.
    sigset_t all, usual;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &usual);
    try {
      std::thread([this] { serve(); }).detach();
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &usual, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &usual, nullptr);
  }

  pid_t owner() const { return owner_; }

  pid_t fork(const std::function<void()>& in_child) {
    const std::lock_guard one_at_a_time(callers_);
    std::unique_lock lock(mutex_);
    pthread_sigmask(SIG_SETMASK, nullptr, &mask_);
    in_child_ = &in_child;
    changed_.notify_all();
    changed_.wait(lock, [&] { return in_child_ == nullptr; });
    if (forked_ < 0) throw std::system_error(error_, std::generic_category(), "fork");
    return forked_;
  }

 private:
  [[noreturn]] void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return in_child_ != nullptr; });
      forked_ = ::fork();
      if (forked_ == 0) {
        pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
        (*in_child_)();
        _exit(127);
      }
      error_ = errno;
      ++forks_here;
      in_child_ = nullptr;
      changed_.notify_all();
    }
  }

  const pid_t owner_;
  std::mutex callers_, mutex_;
  std::condition_variable changed_;
  const std::function<void()>* in_child_ = nullptr;
  sigset_t mask_{};
  pid_t forked_ = -1;
  int error_ = 0;
};

}  // namespace

int lasting_forks() { return forks_here; }

pid_t fork_from_lasting_thread(const std::function<void()>& in_child) {
  // Never deleted, because the thread uses it until the process ends. A forked child has no such
  // thread and creates its own.
  static std::mutex mutex;
  static ForkingThread* thread = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (thread == nullptr || thread->owner() != getpid()) thread = new ForkingThread;
  }
  return thread->fork(in_child);
}

}  // namespace plumb::process
