// SPDX-License-Identifier: Apache-2.0
//
// Memory, streams and events. Graphs are in gpu_graphs.cpp.
#include "device/gpu/gpu_device.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace plumb::device::PLUMB_GPU {

namespace {

constexpr std::size_t kFrontGuard = 512;  // a multiple of 256: allocations stay 256-byte aligned
constexpr std::size_t kRearGuard = 1024;
constexpr int kPoison = 0xf7;  // NaN in halves, floats and doubles; negative in integers

thread_local std::string launch_error;

NativeStream native(Stream stream) { return static_cast<NativeStream>(stream); }
NativeEvent native_event(Event event) { return static_cast<NativeEvent>(event); }

// Runs `call` and drops its DeviceError. For destructors, which may not throw: an earlier call has
// thrown the first error already.
void quietly(auto&& call) {
  try {
    call();
  } catch (const DeviceError&) {
  }
}

void forget(std::mutex& mutex, auto& list, auto value) {
  const std::lock_guard lock(mutex);
  std::erase(list, value);
}

void remember(std::mutex& mutex, auto& list, auto value) {
  const std::lock_guard lock(mutex);
  list.push_back(value);
}

}  // namespace

const Properties& properties() {
  static const Properties found = runtime::query();
  return found;
}

const Properties& stream_properties(plumb_stream) { return properties(); }

std::string why_unavailable(const std::string& platform) {
  try {
    if (runtime::device_count() == 0) return "no device";
  } catch (const DeviceError& error) {
    return error.what();
  }
  if (properties().platform == platform) return "";
  return "the device here is " + properties().platform;
}

std::string take_launch_error() { return std::exchange(launch_error, {}); }

plumb_status launch_raw(const void* kernel, const LaunchShape& shape, plumb_stream stream,
                        void** arguments) {
  std::string error = runtime::launch(kernel, shape, native(stream), arguments);
  if (error.empty()) return PLUMB_OK;
  launch_error = std::move(error);
  return PLUMB_LAUNCH_FAILED;
}

GpuDevice::GpuDevice() : own_(runtime::create_stream()) {}

GpuDevice::~GpuDevice() {
  for (const OpenCapture& capture : captures_) {  // captures that an exception left open
    quietly([&] { runtime::destroy(runtime::end_capture(capture.stream)); });
  }
  for (const NativeStream stream : streams_) {
    quietly([&] { runtime::synchronize(stream); });
    quietly([&] { runtime::destroy(stream); });
  }
  for (const NativeEvent event : events_) quietly([&] { runtime::destroy(event); });
  for (void* memory : pinned_) quietly([&] { runtime::free_pinned(memory); });
  for (const auto& [address, allocation] : allocations_) {
    quietly([base = allocation.base] { runtime::free(base); });
  }
  quietly([&] { runtime::destroy(own_); });
}

void GpuDevice::refuse_in_capture(const std::string& call) {
  if (!capturing()) return;
  throw DeviceError(ErrorKind::capture_unsupported, call + ": not allowed during capture");
}

void* GpuDevice::allocate(std::size_t bytes, std::string_view label) {
  refuse_in_capture("allocate " + std::string(label));
  Allocation allocation{nullptr, bytes, std::string(label), true};
  allocation.base = static_cast<std::uint8_t*>(runtime::allocate(kFrontGuard + bytes + kRearGuard));
  std::uint8_t* const address = allocation.base + kFrontGuard;
  runtime::fill(allocation.base, kGuardByte, kFrontGuard, own_);
  if (bytes > 0) runtime::fill(address, kPoison, bytes, own_);
  runtime::fill(address + bytes, kGuardByte, kRearGuard, own_);
  runtime::synchronize(own_);
  const std::lock_guard lock(mutex_);
  allocations_.emplace(address, std::move(allocation));
  return address;
}

// Backs all of the memory at once: cards that run these cases have enough. Filled with zeros,
// because sparse memory reads as zero.
void* GpuDevice::allocate_sparse(std::size_t bytes, std::string_view label) {
  refuse_in_capture("allocate_sparse " + std::string(label));
  void* const memory = runtime::allocate(bytes);
  runtime::fill(memory, 0, bytes, own_);
  runtime::synchronize(own_);
  auto* const address = static_cast<std::uint8_t*>(memory);
  const std::lock_guard lock(mutex_);
  allocations_.emplace(address, Allocation{address, bytes, std::string(label), false});
  return memory;
}

void GpuDevice::free(void* memory) {
  std::unique_lock lock(mutex_);
  const auto found = allocations_.extract(static_cast<std::uint8_t*>(memory));
  lock.unlock();
  if (found.empty()) {
    throw DeviceError(ErrorKind::invalid_argument, "free: no allocation starts at this address");
  }
  runtime::free(found.mapped().base);
}

void* GpuDevice::allocate_pinned(std::size_t bytes) {
  void* const memory = runtime::allocate_pinned(bytes);
  remember(mutex_, pinned_, memory);
  return memory;
}

void GpuDevice::free_pinned(void* memory) {
  runtime::free_pinned(memory);
  forget(mutex_, pinned_, memory);
}

std::vector<GuardZone> GpuDevice::zones(const Allocations& allocations) {
  std::vector<GuardZone> all;
  for (const auto& [address, allocation] : allocations) {
    if (!allocation.guarded) continue;
    all.push_back({allocation.base, kFrontGuard});
    all.push_back({address + allocation.bytes, kRearGuard});
  }
  return all;
}

GuardDamage GpuDevice::describe_damage(const Allocation& allocation, const GuardZone& zone) const {
  std::vector<std::uint8_t> bytes(zone.bytes);
  runtime::copy(bytes.data(), zone.begin, zone.bytes, own_);
  runtime::fill(zone.begin, kGuardByte, zone.bytes, own_);
  runtime::synchronize(own_);
  const auto is_damaged = [](std::uint8_t byte) { return byte != kGuardByte; };
  const auto first = std::find_if(bytes.begin(), bytes.end(), is_damaged);
  GuardDamage damage;
  damage.label = allocation.label;
  damage.offset = zone.begin + (first - bytes.begin()) - (allocation.base + kFrontGuard);
  damage.expected = kGuardByte;
  damage.got = *first;
  damage.bytes = std::count_if(bytes.begin(), bytes.end(), is_damaged);
  return damage;
}

// Checks a copy of the list: allocations that other threads make meanwhile are checked by the next
// call. Freeing an allocation meanwhile is an error of the caller, as with any pending work.
std::vector<GuardDamage> GpuDevice::check_guards() {
  std::unique_lock lock(mutex_);
  const Allocations allocations = allocations_;
  lock.unlock();
  const std::vector<GuardZone> all = zones(allocations);
  if (all.empty()) return {};
  const std::size_t zone_bytes = all.size() * sizeof(GuardZone);
  const std::size_t count_bytes = all.size() * sizeof(std::uint32_t);
  void* const scratch = runtime::allocate_async(zone_bytes + count_bytes, own_);
  auto* const device_zones = static_cast<GuardZone*>(scratch);
  auto* const device_counts = reinterpret_cast<std::uint32_t*>(device_zones + all.size());
  std::vector<std::uint32_t> damaged(all.size());
  runtime::copy(device_zones, all.data(), zone_bytes, own_);
  runtime::fill(device_counts, 0, count_bytes, own_);
  if (count_damage(device_zones, static_cast<int>(all.size()), device_counts, own_) != PLUMB_OK) {
    throw DeviceError(ErrorKind::other, "check_guards: " + take_launch_error());
  }
  runtime::copy(damaged.data(), device_counts, count_bytes, own_);
  runtime::free_async(scratch, own_);
  runtime::synchronize(own_);
  std::vector<GuardDamage> found;
  std::size_t zone = 0;
  for (const auto& [address, allocation] : allocations) {
    if (!allocation.guarded) continue;
    for (int side = 0; side < 2; ++side, ++zone) {
      if (damaged[zone] != 0) found.push_back(describe_damage(allocation, all[zone]));
    }
  }
  return found;
}

Stream GpuDevice::create_stream() {
  const NativeStream stream = runtime::create_stream();
  remember(mutex_, streams_, stream);
  return stream;
}

void GpuDevice::destroy_stream(Stream stream) {
  runtime::destroy(native(stream));
  forget(mutex_, streams_, native(stream));
}

Event GpuDevice::create_event() {
  const NativeEvent event = runtime::create_event();
  remember(mutex_, events_, event);
  return event;
}

Event GpuDevice::create_timing_event() {
  const NativeEvent event = runtime::create_timing_event();
  remember(mutex_, events_, event);
  return event;
}

double GpuDevice::elapsed_seconds(Event from, Event to) {
  return 1e-3 * runtime::elapsed_milliseconds(native_event(from), native_event(to));
}

void GpuDevice::destroy_event(Event event) {
  runtime::destroy(native_event(event));
  forget(mutex_, events_, native_event(event));
}

void GpuDevice::record(Event event, Stream stream) {
  runtime::record(native_event(event), native(stream));
}

void GpuDevice::wait(Stream stream, Event event) {
  runtime::wait(native(stream), native_event(event));
}

void GpuDevice::synchronize_event(Event event) { runtime::synchronize(native_event(event)); }

void GpuDevice::synchronize(Stream stream) { runtime::synchronize(native(stream)); }

void GpuDevice::synchronize() { runtime::synchronize_device(); }

void GpuDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  if (bytes == 0) return;
  if (runtime::is_captured(native(stream)) && runtime::is_pageable(to)) {
    throw DeviceError(ErrorKind::capture_unsupported,
                      "copy to pageable memory during capture: it is complete on return, so it "
                      "would have to wait");
  }
  runtime::copy(to, from, bytes, native(stream));
}

void GpuDevice::fill(void* to, std::uint8_t value, std::size_t bytes, Stream stream) {
  if (bytes == 0) return;
  runtime::fill(to, value, bytes, native(stream));
}

void GpuDevice::call_host(void (*function)(void*), void* argument, Stream stream) {
  runtime::call_host(function, argument, native(stream));
}

}  // namespace plumb::device::PLUMB_GPU
