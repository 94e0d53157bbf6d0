// SPDX-License-Identifier: Apache-2.0
//
// Host threads that do one thing after the other together. They live as long as the team: a graph
// capture has to begin and end on one thread.
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

  // Calls work(i) on thread i, for all i at once. Returns when all have ended, with what each
  // threw.
  std::vector<std::exception_ptr> run(const std::function<void(int)>& work);

 private:
  void serve(int self);

  const std::function<void(int)>* work_ = nullptr;  // null: the team ends
  std::vector<std::exception_ptr> errors_;
  std::barrier<> starts_, ends_;
  std::vector<std::jthread> threads_;  // last: they use what stands above
};

}  // namespace plumb::cases
