// SPDX-License-Identifier: Apache-2.0
#include "device/remote/device_calls.h"

#include <array>

namespace plumb::device::remote {

namespace {

using Handler = void (*)(const Context&, MessageReader&, MessageWriter&);

void* address(std::uint64_t number) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number));
}

Device& device_of(const Context& context, MessageReader& request) {
  return context.server.device(request.get<std::uint64_t>());
}

// Calls whose arguments are handles, and which return one value or nothing.
template <auto kCall>
struct Forward;
template <typename Result, typename... Handle, Result (Device::*kCall)(Handle...)>
struct Forward<kCall> {
  static void run(const Context& context, MessageReader& request, MessageWriter& answer) {
    Device& device = device_of(context, request);
    // Braces: the handles are read from left to right.
    const std::array<void*, sizeof...(Handle)> handles{next<Handle>(request)...};
    apply(device, handles, answer, std::index_sequence_for<Handle...>());
  }

 private:
  template <typename>
  static void* next(MessageReader& request) {
    return address(request.get<std::uint64_t>());
  }
  template <std::size_t... kAt>
  static void apply(Device& device, const std::array<void*, sizeof...(Handle)>& handles,
                    MessageWriter& answer, std::index_sequence<kAt...>) {
    if constexpr (std::is_void_v<Result>) {
      (device.*kCall)(handles[kAt]...);
    } else if constexpr (std::is_pointer_v<Result>) {
      answer.put(word_of((device.*kCall)(handles[kAt]...)));
    } else {
      answer.put((device.*kCall)(handles[kAt]...));
    }
  }
};

void open(const Context& context, MessageReader& request, MessageWriter& answer) {
  const std::string platform = request.text();
  Conditions conditions;
  conditions.order = request.get<Order>();
  conditions.seed = request.get<std::uint64_t>();
  conditions.policy = request.get<Policy>();
  conditions.checked = request.get<bool>();
  conditions.page_guards = request.get<bool>();
  conditions.disabled_barriers.resize(request.get<std::uint64_t>());
  for (std::string& site : conditions.disabled_barriers) site = request.text();
  answer.put(context.server.open(platform, conditions));
}

void properties(const Context& context, MessageReader& request, MessageWriter& answer) {
  const Properties p = context.server.properties_of(request.text());
  answer.put_text(p.platform).put_text(p.name).put_text(p.runtime);
  answer.put(p.simulated).put(p.wave_size).put(p.multiprocessors).put(p.max_threads_per_block);
  answer.put(p.shared_bytes_per_block).put(p.memory_bytes).put(p.max_grid_x).put(p.max_grid_y);
  answer.put(p.fp8);
}

void close_device(const Context& context, MessageReader& request, MessageWriter&) {
  context.server.close(request.get<std::uint64_t>());
}

template <void* (Device::*kAllocate)(std::size_t, std::string_view)>
void allocate(const Context& context, MessageReader& request, MessageWriter& answer) {
  Device& device = device_of(context, request);
  const auto bytes = request.get<std::uint64_t>();
  answer.put(word_of((device.*kAllocate)(bytes, request.text())));
}

void allocate_pinned(const Context& context, MessageReader& request, MessageWriter& answer) {
  Device& device = device_of(context, request);
  answer.put(word_of(device.allocate_pinned(request.get<std::uint64_t>())));
}

template <bool kWrite>
void access_pinned(const Context& context, MessageReader& request, MessageWriter&) {
  device_of(context, request);
  void* const pinned = address(request.get<std::uint64_t>());
  const auto bytes = request.get<std::uint64_t>();
  std::byte* const shared = context.buffer.range(0, bytes);
  std::memcpy(kWrite ? pinned : shared, kWrite ? shared : pinned, bytes);
}

void check_guards(const Context& context, MessageReader& request, MessageWriter& answer) {
  const std::vector<GuardDamage> damage = device_of(context, request).check_guards();
  answer.put<std::uint64_t>(damage.size());
  for (const GuardDamage& one : damage) {
    answer.put_text(one.label).put(one.offset).put(one.expected).put(one.got).put(one.bytes);
  }
}

void elapsed_seconds(const Context& context, MessageReader& request, MessageWriter& answer) {
  Device& device = device_of(context, request);
  const Event from = address(request.get<std::uint64_t>());
  answer.put(device.elapsed_seconds(from, address(request.get<std::uint64_t>())));
}

void* at(const End& end, std::uint64_t bytes, const Context& context) {
  if (end.place == CopyPlace::device) return address(end.address);
  return context.buffer.range(end.address, bytes);
}

void refuse_in_capture(Device& device) {
  if (!device.capturing()) return;
  throw DeviceError(
      ErrorKind::capture_unsupported,
      "copy from pageable memory in a capture: the process that runs a plug-in cannot "
      "read it at replay");
}

void copy(const Context& context, MessageReader& request, MessageWriter&) {
  Device& device = device_of(context, request);
  const auto to = request.get<End>(), from = request.get<End>();
  const auto bytes = request.get<std::uint64_t>();
  const Stream stream = address(request.get<std::uint64_t>());
  if (from.place == CopyPlace::shared_buffer) refuse_in_capture(device);
  device.copy(at(to, bytes, context), at(from, bytes, context), bytes, stream);
}

void copy_inline(const Context& context, MessageReader& request, MessageWriter&) {
  Device& device = device_of(context, request);
  void* const to = address(request.get<std::uint64_t>());
  const auto bytes = request.get<std::uint64_t>();
  const Stream stream = address(request.get<std::uint64_t>());
  refuse_in_capture(device);
  device.copy(to, request.take(bytes), bytes, stream);
}

void settle(const Context&, MessageReader&, MessageWriter&) {}

void fill(const Context& context, MessageReader& request, MessageWriter&) {
  Device& device = device_of(context, request);
  void* const to = address(request.get<std::uint64_t>());
  const auto value = request.get<std::uint8_t>();
  const auto bytes = request.get<std::uint64_t>();
  device.fill(to, value, bytes, address(request.get<std::uint64_t>()));
}

void take_launch_error(const Context& context, MessageReader& request, MessageWriter& answer) {
  answer.put_text(device_of(context, request).take_launch_error());
}

void nodes(const Context& context, MessageReader& request, MessageWriter& answer) {
  Device& device = device_of(context, request);
  const auto all = device.nodes(address(request.get<std::uint64_t>()));
  answer.put<std::uint64_t>(all.size());
  for (const GraphNode& node : all) answer.put_text(node.kind).put_text(node.name);
}

template <void (Server::*kCall)(MessageReader&, MessageWriter&)>
void call_entry(const Context& context, MessageReader& request, MessageWriter& answer) {
  (context.server.*kCall)(request, answer);
}

void take_notes(const Context& context, MessageReader&, MessageWriter& answer) {
  const std::vector<std::string> notes = context.server.take_notes();
  answer.put<std::uint64_t>(notes.size());
  for (const std::string& note : notes) answer.put_text(note);
}

using SynchronizeStream = void (Device::*)(Stream);
using Synchronize = void (Device::*)();

// In the order of RemoteCall.
constexpr Handler kHandlers[] = {
    &properties,
    &open,
    &close_device,
    &allocate<&Device::allocate>,
    &allocate<&Device::allocate_sparse>,
    &Forward<&Device::free>::run,
    &allocate_pinned,
    &Forward<&Device::free_pinned>::run,
    &access_pinned<true>,
    &access_pinned<false>,
    &check_guards,
    &Forward<&Device::create_stream>::run,
    &Forward<&Device::destroy_stream>::run,
    &Forward<&Device::create_event>::run,
    &Forward<&Device::destroy_event>::run,
    &Forward<&Device::record>::run,
    &Forward<&Device::wait>::run,
    &Forward<&Device::synchronize_event>::run,
    &Forward<&Device::create_timing_event>::run,
    &elapsed_seconds,
    &Forward<static_cast<SynchronizeStream>(&Device::synchronize)>::run,
    &Forward<static_cast<Synchronize>(&Device::synchronize)>::run,
    &copy,
    &fill,
    &take_launch_error,
    &Forward<&Device::begin_capture>::run,
    &Forward<&Device::capturing>::run,
    &Forward<&Device::end_capture>::run,
    &nodes,
    &Forward<&Device::instantiate>::run,
    &Forward<&Device::replay>::run,
    &Forward<&Device::destroy_graph>::run,
    &Forward<&Device::destroy_graph_exec>::run,
    &copy_inline,
    &settle,
    &call_entry<&Server::launch>,
    &call_entry<&Server::plan>,
    &call_entry<&Server::numerics>,
    &call_entry<&Server::state_create>,
    &call_entry<&Server::state_destroy>,
    &take_notes,
    &call_entry<&Server::call_own_kernel>};
static_assert(std::size(kHandlers) == static_cast<std::size_t>(RemoteCall::count));

}  // namespace

void carry_out(RemoteCall call, const Context& context, MessageReader& request,
               MessageWriter& answer) {
  if (call >= RemoteCall::count) throw ProtocolError("an unknown call");
  kHandlers[static_cast<std::size_t>(call)](context, request, answer);
}

}  // namespace plumb::device::remote
