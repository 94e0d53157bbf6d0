// SPDX-License-Identifier: Apache-2.0
#include "device/launch_state.h"

#include <utility>

namespace plumb::device {

LaunchState::~LaunchState() {
  if (destroy_ != nullptr) destroy_(own_);
}

void* LaunchState::own(const OpEntry& entry, const void* params) {
  if (destroy_ == nullptr && entry.state_create != nullptr) {
    own_ = entry.state_create(params);
    destroy_ = entry.state_destroy;
  }
  return own_;
}

plumb_status LaunchState::launch(const OpEntry& entry, const void* params) {
  if (!mark_planned() && entry.plan != nullptr) {
    const plumb_status status = entry.plan(params);
    if (status != PLUMB_OK) return status;
  }
  return entry.launch(params);
}

bool LaunchState::mark_planned() { return std::exchange(planned_, true); }

}  // namespace plumb::device
