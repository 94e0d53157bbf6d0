// SPDX-License-Identifier: Apache-2.0
//
// A Device on a vendor's runtime. CUDA and HIP compile the same code, each in its own namespace
// with its own gpu_runtime.h. It uses the process's current device and checks every call. Any
// number of host threads may use it: the runtimes are thread-safe, and a mutex protects the lists
// kept here. The mutex is never held during a call that may wait.
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
// Why this machine cannot run `platform`; empty if it can.
std::string why_unavailable(const std::string& platform);
// Defined by each back end. nullptr: it has none.
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
    std::uint8_t* base = nullptr;  // address that the runtime returned
    std::size_t bytes = 0;         // size that the caller asked for
    std::string label;
    bool guarded = true;
  };
  using Allocations = std::map<std::uint8_t*, Allocation>;  // key: the address that the caller got
  struct OpenCapture {
    NativeStream stream = nullptr;
    std::thread::id thread;  // the thread that began the capture
  };
  // Front and rear zones of all guarded allocations, in the order of the map.
  static std::vector<GuardZone> zones(const Allocations& allocations);
  GuardDamage describe_damage(const Allocation& allocation, const GuardZone& zone) const;
  void refuse_in_capture(const std::string& call);

  std::mutex mutex_;  // guards the members from here to own_
  Allocations allocations_;
  std::vector<NativeStream> streams_;
  std::vector<NativeEvent> events_;
  std::vector<void*> pinned_;
  std::vector<OpenCapture> captures_;  // captures in progress
  NativeStream own_ = nullptr;         // stream on which this class writes guards and poison
};

}  // namespace plumb::device::PLUMB_GPU
