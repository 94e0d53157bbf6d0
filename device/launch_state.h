// SPDX-License-Identifier: Apache-2.0
//
// Host state of an op that outlives its launches: whether its plan is made, and what the
// implementation keeps.
#pragma once

#include "device/op_entry.h"

namespace plumb::device {

// For one entry, and one thread at a time.
class LaunchState {
 public:
  LaunchState() = default;
  ~LaunchState();
  LaunchState(const LaunchState&) = delete;
  LaunchState& operator=(const LaunchState&) = delete;

  // The implementation's own state, created at the first call. Null: it keeps none.
  void* own(const OpEntry& entry, const void* params);
  // Enqueues the plan if it is not made, and the launch.
  plumb_status launch(const OpEntry& entry, const void* params);
  // Whether the plan was made before. It is now.
  bool mark_planned();

 private:
  bool planned_ = false;
  void* own_ = nullptr;
  void (*destroy_)(void*) = nullptr;
};

}  // namespace plumb::device
