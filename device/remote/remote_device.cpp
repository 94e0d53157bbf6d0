// SPDX-License-Identifier: Apache-2.0
#include "device/remote/remote_device.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "device/remote/parameters.h"

namespace plumb::device::remote {

namespace {

void* handle(MessageReader answer) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(answer.get<std::uint64_t>()));
}

}  // namespace

RemoteDevice::RemoteDevice(std::shared_ptr<PluginProcess> process, std::string_view platform,
                           const Conditions& conditions)
    : process_(std::move(process)),
      properties_(process_->properties_of(platform)),
      conditions_(conditions) {}

void RemoteDevice::open() {
  MessageWriter request;
  request.put_text(properties_.platform).put(conditions_.order).put(conditions_.seed);
  request.put(conditions_.policy).put(conditions_.checked).put(conditions_.page_guards);
  request.put<std::uint64_t>(conditions_.disabled_barriers.size());
  for (const std::string& site : conditions_.disabled_barriers) request.put_text(site);
  id_ = call(RemoteCall::open, request).get<std::uint64_t>();
}

RemoteDevice::~RemoteDevice() {
  if (id_ == 0) return;
  try {
    call(RemoteCall::close);
  } catch (const std::exception&) {  // reported before, by the call that found it
  }
}

MessageWriter RemoteDevice::request() {
  std::call_once(opened_, [this] { open(); });
  MessageWriter request;
  request.put(id_);
  return request;
}

MessageReader RemoteDevice::call(RemoteCall what, const MessageWriter& request) {
  return process_->connection().call(what, request);
}

void RemoteDevice::post(RemoteCall what, const MessageWriter& request) {
  process_->connection().post(what, request);
}

template <typename... Handle>
MessageReader RemoteDevice::call(RemoteCall what, Handle... handles) {
  MessageWriter words = request();
  (words.put(word_of(handles)), ...);
  return call(what, words);
}

void* RemoteDevice::allocate(std::size_t bytes, std::string_view label) {
  MessageWriter words = request();
  words.put<std::uint64_t>(bytes).put_text(label);
  return marked(call(RemoteCall::allocate, words).get<std::uint64_t>());
}

void* RemoteDevice::allocate_sparse(std::size_t bytes, std::string_view label) {
  MessageWriter words = request();
  words.put<std::uint64_t>(bytes).put_text(label);
  return marked(call(RemoteCall::allocate_sparse, words).get<std::uint64_t>());
}

void RemoteDevice::give_back(RemoteCall what, std::uint64_t handle) {
  MessageWriter words = request();
  try {
    call(what, words.put(handle));
  } catch (const Died&) {
    if (!process_->has_died()) throw;
  }
}

void RemoteDevice::free(void* memory) { give_back(RemoteCall::free, unmarked(memory)); }

void* RemoteDevice::allocate_pinned(std::size_t bytes) {
  MessageWriter words = request();
  const auto there =
      call(RemoteCall::allocate_pinned, words.put<std::uint64_t>(bytes)).get<std::uint64_t>();
  void* const mirror = pinned_.add(there, bytes);
  fetch({pinned_.find(mirror, bytes)});
  return mirror;
}

void RemoteDevice::free_pinned(void* memory) {
  const std::uint64_t there = memory == nullptr ? 0 : pinned_.remove(memory);
  if (memory != nullptr && there == 0) {
    throw DeviceError(ErrorKind::invalid_argument, "free_pinned: no pinned memory");
  }
  give_back(RemoteCall::free_pinned, there);
}

std::vector<GuardDamage> RemoteDevice::check_guards() {
  MessageReader answer = call(RemoteCall::check_guards);
  std::vector<GuardDamage> damage(answer.count(26));
  for (GuardDamage& one : damage) {
    one.label = answer.text();
    one.offset = answer.get<std::int64_t>();
    one.expected = answer.get<std::uint8_t>();
    one.got = answer.get<std::uint8_t>();
    one.bytes = answer.get<std::int64_t>();
  }
  return damage;
}

Stream RemoteDevice::create_stream() { return handle(call(RemoteCall::create_stream)); }
void RemoteDevice::destroy_stream(Stream stream) {
  give_back(RemoteCall::destroy_stream, word_of(stream));
}
Event RemoteDevice::create_event() { return handle(call(RemoteCall::create_event)); }
void RemoteDevice::destroy_event(Event event) {
  give_back(RemoteCall::destroy_event, word_of(event));
}
void RemoteDevice::record(Event event, Stream stream) { call(RemoteCall::record, event, stream); }
void RemoteDevice::wait(Stream stream, Event event) { call(RemoteCall::wait, stream, event); }
Event RemoteDevice::create_timing_event() { return handle(call(RemoteCall::create_timing_event)); }

double RemoteDevice::elapsed_seconds(Event from, Event to) {
  return call(RemoteCall::elapsed_seconds, from, to).get<double>();
}

void RemoteDevice::synchronize_event(Event event) {
  call(RemoteCall::synchronize_event, event);
  fetch(pinned_.take_written(nullptr));
}

void RemoteDevice::synchronize(Stream stream) {
  // Right after a copy that was complete on return, nothing is pending.
  const Connection& connection = process_->connection();
  const Drained now{id_, stream, connection.requests()};
  if (!properties_.simulated || connection.drained() != now) {
    call(RemoteCall::synchronize_stream, stream);
  }
  fetch(pinned_.take_written(stream));
}

void RemoteDevice::synchronize() {
  call(RemoteCall::synchronize);
  fetch(pinned_.take_written(nullptr));
}

void RemoteDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  auto* const begin = static_cast<std::byte*>(to);
  const auto* const source = static_cast<const std::byte*>(from);
  std::size_t done = 0;
  do {  // also for 0 bytes: the device checks the call
    const std::size_t piece = std::min(bytes - done, kSharedBytes);
    copy_piece(begin + done, source + done, piece, stream);
    done += piece;
  } while (done < bytes);
}

void RemoteDevice::copy_piece(std::byte* to, const std::byte* from, std::size_t bytes,
                              Stream stream) {
  const PinnedMirrors::MirrorPiece to_pinned = pinned_.find(to, bytes);
  const PinnedMirrors::MirrorPiece from_pinned = pinned_.find(from, bytes);
  const auto end_of = [](const void* address, const PinnedMirrors::MirrorPiece& piece) -> End {
    if (is_marked(address)) return {CopyPlace::device, unmarked(address)};
    if (piece.here != nullptr) return {CopyPlace::device, piece.there};
    return {CopyPlace::shared_buffer, 0};
  };
  const End target = end_of(to, to_pinned), source = end_of(from, from_pinned);
  if (source.place == CopyPlace::shared_buffer && target.place == CopyPlace::device &&
      to_pinned.here == nullptr && bytes <= kInlineBytes) {
    MessageWriter words = request();
    words.put(target.address).put<std::uint64_t>(bytes).put(word_of(stream)).put_bytes(from, bytes);
    return post(RemoteCall::copy_inline, words);
  }
  std::byte* const shared = process_->connection().buffer().data();
  if (source.place == CopyPlace::shared_buffer) std::memcpy(shared, from, bytes);
  const bool captured = (to_pinned.here != nullptr || from_pinned.here != nullptr) && capturing();
  if (from_pinned.here != nullptr) {
    send(from_pinned);
    pinned_.note_read(from_pinned, captured);
  }
  Connection& connection = process_->connection();
  const std::uint64_t requests = connection.requests();
  transfer(target, source, bytes, stream);
  if (target.place == CopyPlace::shared_buffer) {
    std::memcpy(to, shared, bytes);
    connection.note_drained({id_, stream, requests + 1});
  }
  if (to_pinned.here != nullptr) pinned_.note_written(to_pinned, stream, captured);
}

void RemoteDevice::transfer(const End& to, const End& from, std::size_t bytes, Stream stream) {
  MessageWriter words = request();
  words.put(to).put(from).put<std::uint64_t>(bytes).put(word_of(stream));
  if (to.place == CopyPlace::device && from.place == CopyPlace::device)
    return post(RemoteCall::copy, words);
  call(RemoteCall::copy, words);
}

void RemoteDevice::send(const PinnedMirrors::MirrorPiece& piece) {
  MessageWriter words = request();
  words.put(piece.there).put<std::uint64_t>(piece.bytes);
  std::memcpy(process_->connection().buffer().data(), piece.here, piece.bytes);
  call(RemoteCall::write_pinned, words);
}

void RemoteDevice::fetch(const std::vector<PinnedMirrors::MirrorPiece>& pieces) {
  for (const PinnedMirrors::MirrorPiece& piece : pieces) {
    for (std::size_t done = 0; done < piece.bytes; done += kSharedBytes) {
      const std::size_t bytes = std::min(piece.bytes - done, kSharedBytes);
      MessageWriter words = request();
      words.put(piece.there + done).put<std::uint64_t>(bytes);
      call(RemoteCall::read_pinned, words);
      std::memcpy(piece.here + done, process_->connection().buffer().data(), bytes);
    }
  }
}

void RemoteDevice::fill(void* to, std::uint8_t value, std::size_t bytes, Stream stream) {
  const PinnedMirrors::MirrorPiece pinned = pinned_.find(to, bytes);
  const std::uint64_t there = pinned.here != nullptr ? pinned.there : unmarked(to);
  MessageWriter words = request();
  words.put(there).put(value).put<std::uint64_t>(bytes).put(word_of(stream));
  post(RemoteCall::fill, words);
  if (pinned.here != nullptr) pinned_.note_written(pinned, stream, capturing());
}

void RemoteDevice::call_host(void (*)(void*), void*, Stream) {
  throw DeviceError(ErrorKind::invalid_argument,
                    "call_host: the function is not in the process that has the device");
}

std::string RemoteDevice::take_launch_error() { return call(RemoteCall::take_launch_error).text(); }

void RemoteDevice::begin_capture(Stream stream) { call(RemoteCall::begin_capture, stream); }
bool RemoteDevice::capturing() { return call(RemoteCall::capturing).get<bool>(); }
Graph RemoteDevice::end_capture(Stream stream) {
  return handle(call(RemoteCall::end_capture, stream));
}

std::vector<GraphNode> RemoteDevice::nodes(Graph graph) {
  MessageReader answer = call(RemoteCall::nodes, graph);
  std::vector<GraphNode> all(answer.count(16));
  for (GraphNode& node : all) {
    node.kind = answer.text();
    node.name = answer.text();
  }
  return all;
}

GraphExec RemoteDevice::instantiate(Graph graph) {
  return handle(call(RemoteCall::instantiate, graph));
}

void RemoteDevice::replay(GraphExec graph, Stream stream) {
  for (const PinnedMirrors::MirrorPiece& piece : pinned_.begin_replay(stream)) send(piece);
  MessageWriter words = request();
  post(RemoteCall::replay, words.put(word_of(graph)).put(word_of(stream)));
}

void RemoteDevice::destroy_graph(Graph graph) {
  give_back(RemoteCall::destroy_graph, word_of(graph));
}
void RemoteDevice::destroy_graph_exec(GraphExec graph) {
  give_back(RemoteCall::destroy_graph_exec, word_of(graph));
}

}  // namespace plumb::device::remote
