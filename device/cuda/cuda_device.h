// SPDX-License-Identifier: Apache-2.0
//
// A Device on the CUDA runtime. One process-wide device (the current one); every call is checked.
// Any host thread may use it beside others: the runtime is safe for several threads, and what is
// kept here about its objects has a lock of its own, which is never held during a call that may
// wait.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/cuda/guards.h"
#include "device/cuda/launch.h"
#include "device/device.h"

namespace plumb::device::cuda {

const Properties& properties();

class CudaDevice final : public Device {
 public:
  CudaDevice();
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const Properties& properties() const override { return cuda::properties(); }
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
  void synchronize(Stream stream) override;
  void synchronize() override;

  void copy(void* to, const void* from, std::size_t bytes, Stream stream) override;
  void fill(void* to, std::uint8_t value, std::size_t bytes, Stream stream) override;
  void call_host(void (*function)(void*), void* argument, Stream stream) override;

  std::string take_launch_error() override { return cuda::take_launch_error(); }

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
    std::uint8_t* base = nullptr;  // what cudaMalloc returned
    std::size_t bytes = 0;         // what was asked for
    std::string label;
    bool guarded = true;
  };
  using Allocations = std::map<std::uint8_t*, Allocation>;  // by the address that was handed out
  struct Capture {
    cudaStream_t stream = nullptr;
    std::thread::id thread;  // that began it
  };
  // Front and rear zone of every guarded allocation, in the order of the map.
  static std::vector<GuardZone> zones(const Allocations& allocations);
  GuardDamage describe_damage(const Allocation& allocation, const GuardZone& zone) const;
  void refuse_in_capture(const std::string& call);

  std::mutex mutex_;  // guards what follows, up to own_
  Allocations allocations_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  std::vector<void*> pinned_;
  std::vector<Capture> captures_;  // in progress
  cudaStream_t own_ = nullptr;     // for work that no caller ordered
};

}  // namespace plumb::device::cuda
