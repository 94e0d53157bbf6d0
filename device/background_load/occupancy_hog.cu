// SPDX-License-Identifier: Apache-2.0
//
// Kernel of device/background_load/occupancy_hog.h. Launch: one-dimensional grid, blocks of 64
// threads, each with all shared memory that the platform allows, so that one block fills a
// multiprocessor.
#include "device/background_load/occupancy_hog.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

constexpr int kHogBlock = 64;

PLUMB_KERNEL void occupancy_hog_kernel(plumb_occupancy_hog_params p) {
  auto* const places = dynamic_shared<std::uint32_t>();
  const int self = thread_index();
  std::uint32_t* const element = p.data + std::int64_t{block_index_x()} * block_size() + self;
  std::uint32_t x = *element;
  for (int round = 0; round < p.rounds; ++round) {
    places[self] = x;
    block_sync();
    x = 1664525u * places[(self + 1) % block_size()] + 1013904223u;
    block_sync();
  }
  *element = x;
}

plumb_status launch_occupancy_hog(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const plumb_occupancy_hog_params*>(params);
  if (p.data == nullptr || p.blocks < 1 || p.rounds < 0) return PLUMB_INVALID_ARGUMENT;
  const LaunchShape shape{p.blocks, 1, kHogBlock,
                          stream_properties(p.stream).shared_bytes_per_block};
  return PLUMB_LAUNCH(occupancy_hog_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry occupancy_hog() {
  return {"occupancy_hog",
          launch_occupancy_hog,
          {.product = PLUMB_F32,
           .accumulator = PLUMB_F32,
           .chains = 1,
           .probability = PLUMB_F32,
           .function_ulp = 0,
           .deterministic = 1,
           .stores_partials = 0}};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
