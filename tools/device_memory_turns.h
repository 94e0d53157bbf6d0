// SPDX-License-Identifier: Apache-2.0
//
// A case that found too little memory beside others runs once more, alone: on a real device a far
// row takes the memory that its addresses span. What it lacks then it lacks on this device.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>

#include "device/device.h"
#include "tools/report.h"
#include "tools/selection.h"

namespace plumb::tools {

class DeviceMemoryTurns {
 public:
  // `shared`: do the cases on this platform take memory from each other?
  explicit DeviceMemoryTurns(std::function<bool(const std::string&)> shared = is_real)
      : shared_(std::move(shared)) {}

  // What `once` returns, or what it returns with no other beside it if the first one lacked memory.
  template <class Run>
  Finished run(const Run& once) {
    {
      const std::shared_lock beside_others(lock_);
      Finished finished = once();
      if (!lacked_memory(finished)) return finished;
    }
    const std::unique_lock alone(lock_);
    return once();
  }

 private:
  bool lacked_memory(const Finished& finished) const {
    const auto lacks = [](const cases::Failure& failure) {
      return failure.kind == device::name_of(device::ErrorKind::out_of_memory);
    };
    return (finished.result.lacked_memory ||
            std::ranges::any_of(finished.result.failures, lacks)) &&
           shared_(finished.result.platform);
  }

  std::function<bool(const std::string&)> shared_;
  std::shared_mutex lock_;
};

}  // namespace plumb::tools
