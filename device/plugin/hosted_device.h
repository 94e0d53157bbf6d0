// SPDX-License-Identifier: Apache-2.0
//
// A device whose streams a plug-in may use through the host services of plumb_plugin.h. Lives
// around any back end's device, for as long.
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
  // Waits for a real device, whose pending work may call functions of the plug-in.
  ~HostedDevice() override;

  Stream create_stream() override;
  void destroy_stream(Stream stream) override;
  // Memory for what the captured calls ask for: as much as those before them have asked for.
  void begin_capture(Stream stream) override;
  Graph end_capture(Stream stream) override;
  // On a real device an exception that a function of the plug-in threw comes out of these.
  void synchronize(Stream stream) override;
  void synchronize() override;
  // Also writes to scratch after it was given back.
  std::vector<GuardDamage> check_guards() override;
  // What the plug-in said of the call that failed.
  std::string take_launch_error() override;

  // The services. All throw DeviceError.
  void launch_frozen(const char* name, void (*function)(const void*), const void* arguments,
                     std::size_t bytes, Stream stream);
  void* allocate_scratch(std::size_t bytes, Stream stream);
  void release_scratch(void* memory, Stream stream);
  const plumb_device& description() const { return description_; }

 private:
  // A function and its arguments as they were at the call. Kept until the device goes: a graph may
  // call it at any time.
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
    std::size_t asked_for = 0;  // outside captures, in all
    std::size_t reserved = 0;   // what is left of it in the capture in progress
    bool capturing = false;
  };
  Scratch& scratch_of(Stream stream);
  void rethrow_late_error();

  std::string platform_;
  plumb_device description_ = {};
  std::mutex mutex_;  // of what follows
  std::list<FrozenCall> calls_;
  std::map<Stream, std::unique_ptr<Scratch>> scratch_;
  std::string late_error_;  // of a function that ran on a thread of the driver
};

}  // namespace plumb::device
