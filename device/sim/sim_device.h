// SPDX-License-Identifier: Apache-2.0
//
// The simulated device. Where CUDA allows several behaviours, it takes the one that exposes errors:
//   - free does not wait for pending work, which then finds its memory freed;
//   - pending work outlives its stream, and a late device may never run it;
//   - a device-wide synchronize of a late device starts with the stream that was used last.
// If an operation fails while it executes, the call that made it execute throws, and the device is
// lost, as a CUDA context is after an illegal access: every later call that creates, enqueues,
// captures or waits throws that error again. Frees, destroy_* and check_guards still work. Errors
// found before an operation executes leave the device usable. Calls of several host threads are
// serialised. What an interleaving device executes depends only on its seed and on the work that is
// pending when the first thread waits. So it is the same every time if the threads meet before they
// wait, and streams are created in one order.
// It executes on a thread of its own, whichever thread waits.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "device/sim/device_thread.h"
#include "device/sim/memory/memory.h"
#include "device/sim/streams/capture.h"
#include "device/sim/streams/executor.h"
#include "device/sim/streams/stream.h"

namespace plumb::device::sim {

class SimDevice : public Device {
 public:
  SimDevice(const Properties& properties, const Conditions& conditions);
  ~SimDevice() override;

  const Properties& properties() const override { return properties_; }

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
  void launch_host(std::string_view name, void (*function)(void*), void* argument,
                   std::span<const std::byte> words, Stream stream) override;

  void begin_capture(Stream stream) override;
  bool capturing() override;
  Graph end_capture(Stream stream) override;
  std::vector<GraphNode> nodes(Graph graph) override;
  GraphExec instantiate(Graph graph) override;
  void replay(GraphExec graph, Stream stream) override;
  void destroy_graph(Graph graph) override;
  void destroy_graph_exec(GraphExec graph) override;
  void note_given_back(const void* begin, std::size_t bytes, std::string_view label) override;

  // Enqueues a kernel. PLUMB_LAUNCH calls it.
  void launch(StreamState& stream, KernelCall call);

 private:
  struct GraphState {
    // Null once destroyed. The object stays, so that no later graph gets its address.
    std::shared_ptr<const GraphData> data;
    StreamPoint last_launch;  // of an executable graph; its next launch waits for it
  };
  using GraphTable = std::unordered_map<void*, std::unique_ptr<GraphState>>;
  using Lock = std::unique_lock<std::mutex>;

  // First statement of every public call. Serialises threads; throws inside an operation of the
  // device.
  Lock enter(const char* call);
  // As enter(), but also throws if the device is lost or held_ is set.
  Lock enter_alive(const char* call);

  StreamState& stream_of(const char* call, Stream stream);
  EventState& event_of(const char* call, Event event);
  GraphState& graph_of(const char* call, GraphTable& table, void* graph);

  void submit(StreamState& stream, Operation operation);
  void drain(const StreamPoint& point);
  void run_everything();
  // If this thread has captures in progress, invalidates them and throws.
  void refuse_in_capture(const char* call) const;
  void refuse_in_captures(const std::string& call,
                          const std::vector<std::shared_ptr<Capture>>& captures) const;
  std::vector<std::shared_ptr<Capture>> captures_of_this_thread() const;
  void free_of(const char* call, Memory& from, void* memory);
  // As note_given_back(), with the lock held.
  void note_held(std::uintptr_t begin, std::uintptr_t end, std::string_view label);
  // Makes all streams of the capture ordinary streams again.
  void leave_capture(Capture& capture);
  void refuse_copy_to_pageable(const StreamState& stream, const void* to) const;
  bool pageable(const void* address) const;

  const Properties properties_;
  const Conditions conditions_;
  std::mutex mutex_;
  Memory memory_, pinned_;
  Executor executor_;
  std::unique_ptr<DeviceThread> thread_;  // interleaving devices only, once they execute
  std::optional<DeviceError> lost_;
  std::optional<DeviceError> held_;  // error for the next call that needs the device
  std::uint64_t tickets_ = 0;
  std::vector<std::unique_ptr<StreamState>> streams_;
  std::unordered_map<void*, std::unique_ptr<EventState>> events_;
  std::vector<std::shared_ptr<Capture>> captures_;  // captures in progress
  GraphTable graphs_, graph_execs_;
};

}  // namespace plumb::device::sim
