// SPDX-License-Identifier: Apache-2.0
//
// Host threads that all execute the same function at the same time, one function after another. The
// threads live as long as the team, because a graph capture has to begin and end on one thread.
#pragma once

#include <barrier>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace plumb::cases {

class ThreadTeam {
 public:
  explicit ThreadTeam(int size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // Calls work(i) on thread i, for all i at once, and waits until all calls have ended. Returns the
  // exception of each thread; null if it threw none.
  std::vector<std::exception_ptr> run(const std::function<void(int)>& work);

 private:
  void serve(int self);

  const std::function<void(int)>* work_ = nullptr;  // null: the threads exit
  std::vector<std::exception_ptr> errors_;
  std::barrier<> starts_, ends_;
  std::vector<std::jthread> threads_;  // last member: the threads use all members above
};

}  // namespace plumb::cases
