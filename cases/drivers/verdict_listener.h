// SPDX-License-Identifier: Apache-2.0
//
// Calls a study (cases/studies) back for each verdict of the cases that this thread runs, while the
// listener lives.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

class VerdictListener {
 public:
  using Told =
      std::function<void(const Problem&, const Launched&, const std::vector<TensorReport>&)>;

  explicit VerdictListener(Told told) : told_(std::move(told)), before_(current()) {
    current() = this;
  }
  ~VerdictListener() { current() = before_; }
  VerdictListener(const VerdictListener&) = delete;
  VerdictListener& operator=(const VerdictListener&) = delete;

  // Passes a verdict to the latest listener of the calling thread, if there is one.
  static void tell(const Problem& problem, const Launched& launched,
                   const std::vector<TensorReport>& reports) {
    if (current() != nullptr) current()->told_(problem, launched, reports);
  }

 private:
  static VerdictListener*& current() {
    thread_local VerdictListener* listener = nullptr;
    return listener;
  }

  Told told_;
  VerdictListener* before_;
};

}  // namespace plumb::cases
