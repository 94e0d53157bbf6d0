// SPDX-License-Identifier: Apache-2.0
//
// What runs on a device beside the runners of a concurrent case: a kernel that takes the shared
// memory of multiprocessors, a slow copy, allocations. What they compute is known, so that a
// runner's stray write into their memory shows. For one host thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"

namespace plumb::cases {

// plumb's own kernel for that, on a device of this process.
const device::OpEntry& own_hog(const device::Device& device);

// Enqueues a kernel that keeps `blocks` multiprocessors busy for so many rounds and works on
// `data` [blocks, 64]. Throws DeviceError.
void launch_hog(device::Device& device, const device::OpEntry& hog, std::uint32_t* data,
                std::int32_t blocks, std::int32_t rounds, device::Stream stream);

class BackgroundLoad {
 public:
  explicit BackgroundLoad(device::Device& device) : BackgroundLoad(device, own_hog(device)) {}
  // hog: how the kernel is launched on a device of another process.
  BackgroundLoad(device::Device& device, const device::OpEntry& hog);

  void allocate();
  void begin();  // enqueues both
  // A plain allocation and work on it, as an engine's other threads do at any time.
  void allocate_meanwhile();
  // Waits, and says what came out wrong.
  void finish(std::vector<std::string>& lines);

 private:
  struct Sizes {
    std::int32_t hog_blocks, hog_rounds;
    std::size_t copy_bytes;
  };
  static Sizes sizes_on(const device::Properties& properties);
  void check_hog(std::vector<std::string>& lines);
  bool check_copy(std::vector<std::string>& lines) const;

  device::Device& device_;
  const device::OpEntry& hog_;
  const Sizes sizes_;
  device::Stream hog_stream_, copy_stream_;
  std::uint32_t* hog_data_ = nullptr;
  std::uint32_t hog_value_ = 0;  // of every element, once everything enqueued has run
  std::byte* copied_ = nullptr;
  std::byte *source_ = nullptr, *back_ = nullptr;  // pinned
  std::vector<void*> meanwhile_;
};

}  // namespace plumb::cases
