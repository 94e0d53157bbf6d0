// SPDX-License-Identifier: Apache-2.0
//
// A Device on a vendor's runtime: the same code for CUDA and HIP, in the namespace of the back end
// whose gpu_runtime.h is on the include path. One process-wide device (the current one); every call
// is checked. Any host thread may use it beside others: the runtime is safe for several threads,
// and what is kept here about its objects has a lock of its own, which is never held during a call
// that may wait.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/device.h"
#include "device/gpu/guards.h"
#include "device/gpu/launch.h"
#include "gpu_runtime.h"

namespace plumb::device::PLUMB_GPU {

const Properties& properties();
// Why this machine cannot be `platform`; empty: it can.
std::string why_unavailable(const std::string& platform);
// The back end's own; nullptr: none.
const RateKernels* rate_kernels();

class GpuDevice final : public Device {
 public:
  GpuDevice();
  ~GpuDevice() override;
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  const Properties& properties() const override { return PLUMB_GPU::properties(); }
  void* allocate(std::size_t bytes, std::string_view label) override;
  void* allocate_sparse(std::size_t bytes, std::string_view label) override;
  void free(void* memory) override;
  void* allocate_pinned(std::size_t bytes) override;
  void free_pinned(void* memory) override;
  std::vector<GuardDamage> check_guards() override;

  Stream create_stream() override;
  void destroy_stream(Stream stream) override;
  Event create_event() override;
  void destroy_event(Event event) override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  void synchronize_event(Event event) override;
  Event create_timing_event() override;
  double elapsed_seconds(Event from, Event to) override;
  void synchronize(Stream stream) override;
  void synchronize() override;

  void copy(void* to, const void* from, std::size_t bytes, Stream stream) override;
  void fill(void* to, std::uint8_t value, std::size_t bytes, Stream stream) override;
  void call_host(void (*function)(void*), void* argument, Stream stream) override;

  std::string take_launch_error() override { return PLUMB_GPU::take_launch_error(); }

  void begin_capture(Stream stream) override;
  bool capturing() override;
  Graph end_capture(Stream stream) override;
  std::vector<GraphNode> nodes(Graph graph) override;
  GraphExec instantiate(Graph graph) override;
  void replay(GraphExec graph, Stream stream) override;
  void destroy_graph(Graph graph) override;
  void destroy_graph_exec(GraphExec graph) override;

 private:
  struct Allocation {
    std::uint8_t* base = nullptr;  // what the runtime returned
    std::size_t bytes = 0;         // what was asked for
    std::string label;
    bool guarded = true;
  };
  using Allocations = std::map<std::uint8_t*, Allocation>;  // by the address that was handed out
  struct OpenCapture {
    NativeStream stream = nullptr;
    std::thread::id thread;  // that began it
  };
  // Front and rear zone of every guarded allocation, in the order of the map.
  static std::vector<GuardZone> zones(const Allocations& allocations);
  GuardDamage describe_damage(const Allocation& allocation, const GuardZone& zone) const;
  void refuse_in_capture(const std::string& call);

  std::mutex mutex_;  // guards what follows, up to own_
  Allocations allocations_;
  std::vector<NativeStream> streams_;
  std::vector<NativeEvent> events_;
  std::vector<void*> pinned_;
  std::vector<OpenCapture> captures_;  // in progress
  NativeStream own_ = nullptr;         // for work that no caller ordered
};

}  // namespace plumb::device::PLUMB_GPU
