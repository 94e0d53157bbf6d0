// SPDX-License-Identifier: Apache-2.0
//
// A Device on the CUDA runtime. One process-wide device (the current one); every call is checked.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <string>
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
  Event create_timing_event() override;
  double elapsed_seconds(Event from, Event to) override;
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
  // Front and rear zone of every guarded allocation, in the order of the map.
  std::vector<GuardZone> zones() const;
  GuardDamage describe_damage(const Allocation& allocation, const GuardZone& zone) const;

  std::map<std::uint8_t*, Allocation> allocations_;  // by the address that was handed out
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  std::vector<void*> pinned_;
  std::vector<cudaStream_t> capturing_;
  cudaStream_t own_ = nullptr;  // for work that no caller ordered
};

}  // namespace plumb::device::cuda
