// SPDX-License-Identifier: Apache-2.0
//
// What the lists of device benchmarks share.
#pragma once

#include "tools/bench/bench_device.h"

namespace plumb::tools {

inline constexpr std::int64_t kTokens = 8192, kLatent = 512, kRope = 64;
inline constexpr std::int64_t kHeads = 128, kHeadDim = 512;
inline constexpr Target kMostOfFloor{.least = 0.8}, kHalfOfFloor{.least = 0.5},
    kThirdOfFloor{.least = 0.3};

constexpr double bytes_of(std::int64_t numbers, int each) {
  return static_cast<double>(numbers) * each;
}

// The op at its entry with a copy of these parameters; the stream is the caller's.
template <class Params>
DeviceLaunch launch_of(const device::OpEntry& entry, Params params) {
  return [launch = entry.launch, params](device::Stream stream) {
    Params with_stream = params;
    with_stream.stream = stream;
    return launch(&with_stream);
  };
}

// An op whose floor its bytes are.
inline DeviceOp moving_op(std::string_view op, double bytes,
                          DeviceLaunch (*make)(DeviceBed&, const device::OpEntry&)) {
  return {
      .name = std::string(op), .op = op, .target = kMostOfFloor, .bytes = bytes, .make_set = make};
}

// Norms and hyper-connections.
std::vector<DeviceOp> row_ops();

}  // namespace plumb::tools
