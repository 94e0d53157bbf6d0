// SPDX-License-Identifier: Apache-2.0
//
// How a launcher enqueues a kernel on a native stream. Arguments are passed by value. The text of
// an error is kept per thread until take_launch_error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "device/device.h"
#include "device/launch_shape.h"
#include "gpu_error.h"

namespace plumb::device::PLUMB_GPU {

using device::LaunchShape;

// Properties of the current device; the same for all of its streams.
const Properties& stream_properties(plumb_stream stream);

// Call and error text of this thread's last failed launch, empty if there is none. Reading it
// clears it.
std::string take_launch_error();

plumb_status launch_raw(const void* kernel, const LaunchShape& shape, plumb_stream stream,
                        void** arguments);

template <typename... Parameters, typename... Values>
plumb_status launch_kernel(void (*kernel)(Parameters...), const LaunchShape& shape,
                           plumb_stream stream, Values&&... values) {
  static_assert(sizeof...(Parameters) == sizeof...(Values), "one value per kernel parameter");
  std::tuple<Parameters...> frozen{static_cast<Parameters>(std::forward<Values>(values))...};
  return std::apply(
      [&](auto&... argument) {
        std::array<void*, sizeof...(Parameters) + 1> pointers{
            const_cast<void*>(static_cast<const void*>(&argument))..., nullptr};
        return launch_raw(reinterpret_cast<const void*>(kernel), shape, stream, pointers.data());
      },
      frozen);
}

}  // namespace plumb::device::PLUMB_GPU
