// SPDX-License-Identifier: Apache-2.0
//
// A case that finds too little memory beside other cases runs again, alone. On a real device a row
// with widely separated tensors takes the whole memory between its addresses. If memory is missing
// even then, the device is too small for the case.
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
  // `shared`: whether the cases on a platform take memory from each other.
  explicit DeviceMemoryTurns(std::function<bool(const std::string&)> shared = is_real)
      : shared_(std::move(shared)) {}

  // Calls `once`. If its result lacked memory, calls it again with no other case running, and
  // returns the second result.
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
