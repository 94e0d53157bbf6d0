// SPDX-License-Identifier: Apache-2.0
//
// The part of device/simt.h that kernels of device/gpu use. Threads run one after another.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "device/gpu/launch.h"

#define PLUMB_KERNEL
#define PLUMB_LAUNCH(kernel, shape, stream, ...) \
  ::plumb::device::PLUMB_KERNEL_SET::run_grid((stream), (kernel), (shape), __VA_ARGS__)

namespace plumb::device::PLUMB_KERNEL_SET {

using fake::LaunchShape;

inline int current_block = 0, current_thread = 0, threads_of_block = 1;

inline int block_index_x() { return current_block; }
inline int thread_index() { return current_thread; }
inline int block_size() { return threads_of_block; }

template <typename T>
T atomic_add(T* address, std::type_identity_t<T> value) {
  return std::exchange(*address, *address + value);
}

template <typename... Values>
plumb_status run_grid(plumb_stream, auto kernel, const LaunchShape& shape, Values... values) {
  threads_of_block = shape.block;
  for (current_block = 0; current_block < shape.grid_x; ++current_block) {
    for (current_thread = 0; current_thread < shape.block; ++current_thread) kernel(values...);
  }
  return PLUMB_OK;
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
