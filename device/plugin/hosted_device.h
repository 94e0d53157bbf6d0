// SPDX-License-Identifier: Apache-2.0
//
// Wraps any back end's device, so that a plug-in may use its streams through the host services of
// plumb_plugin.h.
#pragma once

#include <plumb/plumb_plugin.h>

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "device/caching_allocator.h"
#include "device/forwarding_device.h"

namespace plumb::device {

class HostedDevice final : public ForwardingDevice {
 public:
  explicit HostedDevice(std::unique_ptr<Device> inner);
  // Waits for a real device, because its pending work may call functions of the plug-in.
  ~HostedDevice() override;

  Stream create_stream() override;
  void destroy_stream(Stream stream) override;
  // Reserves scratch for the captured calls: as many bytes as the plug-in has requested on this
  // stream outside captures, in total.
  void begin_capture(Stream stream) override;
  Graph end_capture(Stream stream) override;
  // On a real device these throw the error of a plug-in's function that ran on the stream.
  void synchronize(Stream stream) override;
  void synchronize() override;
  // Also finds writes to scratch after its release.
  std::vector<GuardDamage> check_guards() override;
  // The plug-in's explanation of the failed call, or else the device's error.
  std::string take_launch_error() override;

  // The services. All throw DeviceError.
  void launch_frozen(const char* name, void (*function)(const void*), const void* arguments,
                     std::size_t bytes, Stream stream);
  void* allocate_scratch(std::size_t bytes, Stream stream);
  void release_scratch(void* memory, Stream stream);
  const plumb_device& description() const { return description_; }

 private:
  // A function and a copy of its arguments. Kept until the device is destroyed, because a graph may
  // call the function at any time.
  struct FrozenCall {
    HostedDevice* device;
    std::string name;
    void (*function)(const void*);
    std::vector<std::max_align_t> arguments;
  };
  static void run(void* call);

  // The scratch of one stream.
  struct Scratch {
    Scratch(Device& device, Stream stream)
        : allocator(device, stream, CachingAllocator::Reuse::quarantine) {}
    CachingAllocator allocator;
    std::size_t asked_for = 0;  // total bytes of requests outside captures
    std::size_t reserved = 0;   // bytes left in the capture in progress
    bool capturing = false;
  };
  Scratch& scratch_of(Stream stream);
  void rethrow_late_error();

  std::string platform_;
  plumb_device description_ = {};
  std::mutex mutex_;  // guards the members below
  std::list<FrozenCall> calls_;
  std::map<Stream, std::unique_ptr<Scratch>> scratch_;
  std::string late_error_;  // error of a function that ran on a thread of the driver
};

}  // namespace plumb::device
