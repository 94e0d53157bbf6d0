// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/thread_team.h"

#include <utility>

namespace plumb::cases {

ThreadTeam::ThreadTeam(int size)
    : errors_(static_cast<std::size_t>(size)), starts_(size + 1), ends_(size + 1) {
  for (int i = 0; i < size; ++i) threads_.emplace_back([this, i] { serve(i); });
}

ThreadTeam::~ThreadTeam() {
  work_ = nullptr;
  starts_.arrive_and_wait();
}

std::vector<std::exception_ptr> ThreadTeam::run(const std::function<void(int)>& work) {
  work_ = &work;
  starts_.arrive_and_wait();
  ends_.arrive_and_wait();
  return std::exchange(errors_, std::vector<std::exception_ptr>(threads_.size()));
}

void ThreadTeam::serve(int self) {
  for (;;) {
    starts_.arrive_and_wait();
    if (work_ == nullptr) return;
    try {
      (*work_)(self);
    } catch (...) {
      errors_[static_cast<std::size_t>(self)] = std::current_exception();
    }
    ends_.arrive_and_wait();
  }
}

}  // namespace plumb::cases
