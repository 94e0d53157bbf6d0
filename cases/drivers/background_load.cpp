// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/background_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "cases/tensors/fill.h"
#include "device/background_load/occupancy_hog.h"

namespace plumb::cases {

namespace {

constexpr std::size_t kHogBlock = 64;
constexpr int kCopies = 2;  // to the device and back, kCopies times

std::uint32_t after_rounds(std::uint32_t x, int rounds) {
  for (int i = 0; i < rounds; ++i) x = 1664525u * x + 1013904223u;
  return x;
}

}  // namespace

const device::OpEntry& own_hog(const device::Device& device) {
  const device::Implementation& own = device::builtin_implementation(device.properties().platform);
  const device::OpEntry* hog = device::find_entry(own, "occupancy_hog");
  if (hog == nullptr) throw std::logic_error("the platform's kernels lack the occupancy hog");
  return *hog;
}

void launch_hog(device::Device& device, const device::OpEntry& hog, std::uint32_t* data,
                std::int32_t blocks, std::int32_t rounds, device::Stream stream) {
  const plumb_occupancy_hog_params params{data, blocks, rounds, stream};
  if (hog.launch(&params) != PLUMB_OK) {
    throw device::DeviceError(device::ErrorKind::other,
                              "the occupancy hog was not launched " + device.take_launch_error());
  }
}

// Real device: enough work to last for several replays, on half of the multiprocessors. Simulator:
// a few pieces of work are enough, because it interleaves them with the runners' in any case.
BackgroundLoad::Sizes BackgroundLoad::sizes_on(const device::Properties& properties) {
  if (properties.simulated) return {2, 3, std::size_t{16} << 10};
  return {std::max(1, properties.multiprocessors / 2), 20000, std::size_t{8} << 20};
}

BackgroundLoad::BackgroundLoad(device::Device& device, const device::OpEntry& hog)
    : device_(device),
      hog_(hog),
      sizes_(sizes_on(device.properties())),
      hog_stream_(device.create_stream()),
      copy_stream_(device.create_stream()) {}

void BackgroundLoad::allocate() {
  const std::size_t hog_bytes = sizeof(std::uint32_t) * kHogBlock * sizes_.hog_blocks;
  hog_data_ = static_cast<std::uint32_t*>(device_.allocate(hog_bytes, "occupancy hog"));
  copied_ = static_cast<std::byte*>(device_.allocate(sizes_.copy_bytes, "slow copy"));
  source_ = static_cast<std::byte*>(device_.allocate_pinned(sizes_.copy_bytes));
  back_ = static_cast<std::byte*>(device_.allocate_pinned(sizes_.copy_bytes));
  for (std::size_t i = 0; i < sizes_.copy_bytes; i += sizeof(std::uint64_t)) {
    const std::uint64_t bits = random_bits(0, i);
    std::memcpy(source_ + i, &bits, sizeof bits);
  }
  device_.fill(hog_data_, 0, hog_bytes, hog_stream_);
}

void BackgroundLoad::begin() {
  launch_hog(device_, hog_, hog_data_, sizes_.hog_blocks, sizes_.hog_rounds, hog_stream_);
  hog_value_ = after_rounds(hog_value_, sizes_.hog_rounds);
  std::memset(back_, 0, sizes_.copy_bytes);
  for (int i = 0; i < kCopies; ++i) {
    device_.copy(copied_, source_, sizes_.copy_bytes, copy_stream_);
    device_.copy(back_, copied_, sizes_.copy_bytes, copy_stream_);
  }
}

void BackgroundLoad::allocate_meanwhile() {
  constexpr std::size_t kBytes = 4096;
  meanwhile_.push_back(device_.allocate(kBytes, "another thread's memory"));
  device_.fill(meanwhile_.back(), 0x55, kBytes, hog_stream_);
}

void BackgroundLoad::finish(std::vector<std::string>& lines) {
  device_.synchronize(hog_stream_);
  device_.synchronize(copy_stream_);
  for (void* memory : meanwhile_) device_.free(memory);
  meanwhile_.clear();
  check_hog(lines);
  if (!check_copy(lines)) return;
  // Reads the device buffer once more: shows bytes that another stream overwrote after the last
  // copy back.
  device_.copy(back_, copied_, sizes_.copy_bytes, copy_stream_);
  device_.synchronize(copy_stream_);
  check_copy(lines);
}

void BackgroundLoad::check_hog(std::vector<std::string>& lines) {
  std::vector<std::uint32_t> got(kHogBlock * sizes_.hog_blocks);
  device_.copy(got.data(), hog_data_, got.size() * sizeof(std::uint32_t), hog_stream_);
  device_.synchronize(hog_stream_);
  const auto wrong = std::count_if(got.begin(), got.end(),
                                   [&](std::uint32_t value) { return value != hog_value_; });
  if (wrong == 0) return;
  lines.push_back(fmt::format("occupancy hog: {} of its {} values are wrong", wrong, got.size()));
}

bool BackgroundLoad::check_copy(std::vector<std::string>& lines) const {
  if (std::memcmp(back_, source_, sizes_.copy_bytes) == 0) return true;
  const auto [a, b] = std::mismatch(back_, back_ + sizes_.copy_bytes, source_);
  lines.push_back(
      fmt::format("slow copy: byte {} of {} came back wrong", a - back_, sizes_.copy_bytes));
  return false;
}

}  // namespace plumb::cases
