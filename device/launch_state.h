// SPDX-License-Identifier: Apache-2.0
//
// Host state of an op that outlives single launches: whether its plan has been made, and the
// implementation's own state.
#pragma once

#include "device/op_entry.h"

namespace plumb::device {

// For one op entry. One thread may use it at a time.
class LaunchState {
 public:
  LaunchState() = default;
  ~LaunchState();
  LaunchState(const LaunchState&) = delete;
  LaunchState& operator=(const LaunchState&) = delete;

  // The implementation's own state, created by the first call. Null if the implementation keeps no
  // state.
  void* own(const OpEntry& entry, const void* params);
  // Enqueues the plan unless it has been made, then the launch.
  plumb_status launch(const OpEntry& entry, const void* params);
  // Marks the plan as made. Returns whether it was made before.
  bool mark_planned();

 private:
  bool planned_ = false;
  void* own_ = nullptr;
  void (*destroy_)(void*) = nullptr;
};

}  // namespace plumb::device
