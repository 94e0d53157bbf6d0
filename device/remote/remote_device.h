// SPDX-License-Identifier: Apache-2.0
//
// A device in the process that loads a plug-in. Each call is a message. Bytes of copies go through
// memory that both processes map. Addresses of its memory are marked (parameters.h).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/remote/pinned_mirrors.h"
#include "device/remote/plugin_process.h"

namespace plumb::device::remote {

// While one thread uses the process, fills, replays, copies within the device and copies of up to
// 32 KiB (kInlineBytes) from host memory are posted: a later call throws their errors. All calls
// may also throw Died. Functions of this process cannot run on its streams.
class RemoteDevice final : public Device {
 public:
  RemoteDevice(std::shared_ptr<PluginProcess> process, std::string_view platform,
               const Conditions& conditions);
  ~RemoteDevice() override;

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
  Event create_timing_event() override;
  double elapsed_seconds(Event from, Event to) override;
  void synchronize(Stream stream) override;
  void synchronize() override;

  void copy(void* to, const void* from, std::size_t bytes, Stream stream) override;
  void fill(void* to, std::uint8_t value, std::size_t bytes, Stream stream) override;
  void call_host(void (*function)(void*), void* argument, Stream stream) override;
  std::string take_launch_error() override;

  void begin_capture(Stream stream) override;
  bool capturing() override;
  Graph end_capture(Stream stream) override;
  std::vector<GraphNode> nodes(Graph graph) override;
  GraphExec instantiate(Graph graph) override;
  void replay(GraphExec graph, Stream stream) override;
  void destroy_graph(Graph graph) override;
  void destroy_graph_exec(GraphExec graph) override;

 private:
  // Handles of the other process are sent unchanged.
  template <typename... Handle>
  MessageReader call(RemoteCall what, Handle... handles);
  MessageReader call(RemoteCall what, const MessageWriter& request);
  void post(RemoteCall what, const MessageWriter& request);
  // Frees a handle. If the process has died, its handles are gone too, and this does not throw:
  // destructors call it.
  void give_back(RemoteCall what, std::uint64_t handle);
  MessageWriter request();
  void open();

  void copy_piece(std::byte* to, const std::byte* from, std::size_t bytes, Stream stream);
  void transfer(const End& to, const End& from, std::size_t bytes, Stream stream);
  // Each copies a whole piece at once through the shared buffer: to the other process, or from it.
  void send(const PinnedMirrors::MirrorPiece& piece);
  void fetch(const std::vector<PinnedMirrors::MirrorPiece>& pieces);

  const std::shared_ptr<PluginProcess> process_;
  const Properties properties_;
  const Conditions conditions_;
  // The device is opened at its first call: many are only asked for their properties.
  std::once_flag opened_;
  std::uint64_t id_ = 0;
  PinnedMirrors pinned_;
};

}  // namespace plumb::device::remote
