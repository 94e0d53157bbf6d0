// SPDX-License-Identifier: Apache-2.0
//
// Load that runs on a device at the same time as the runners (host threads that launch the op) of a
// concurrent case: a kernel that occupies the shared memory of multiprocessors (the hog), a slow
// copy, allocations. Their results are known in advance, so a runner's stray write into their
// memory is detected. Use from one host thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"

namespace plumb::cases {

// plumb's own hog kernel, for a device of this process.
const device::OpEntry& own_hog(const device::Device& device);

// Enqueues a kernel that occupies `blocks` multiprocessors for `rounds` rounds and updates `data`
// [blocks, 64]. Throws DeviceError.
void launch_hog(device::Device& device, const device::OpEntry& hog, std::uint32_t* data,
                std::int32_t blocks, std::int32_t rounds, device::Stream stream);

class BackgroundLoad {
 public:
  explicit BackgroundLoad(device::Device& device) : BackgroundLoad(device, own_hog(device)) {}
  // hog: entry that launches the kernel, for a device in another process.
  BackgroundLoad(device::Device& device, const device::OpEntry& hog);

  void allocate();
  void begin();  // enqueues the hog kernel and the slow copy
  // Makes a plain allocation and writes to it, as other threads of an engine do at any time.
  void allocate_meanwhile();
  // Waits for the load and appends a line for each wrong result.
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
  // Expected value of every hog_data_ element after all enqueued rounds.
  std::uint32_t hog_value_ = 0;
  std::byte* copied_ = nullptr;
  std::byte *source_ = nullptr, *back_ = nullptr;  // pinned
  std::vector<void*> meanwhile_;
};

}  // namespace plumb::cases
