// SPDX-License-Identifier: Apache-2.0
#include "device/remote/server.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "device/plugin/known_ops.h"
#include "device/remote/device_calls.h"
#include "device/remote/own_kernels.h"

namespace plumb::device::remote {

namespace {

struct ServedAnswer {
  Status status = Status::done;
  Bytes bytes;
};

// Answer to a request, or the error that the call threw.
ServedAnswer answer_to(const Context& context, Message request) {
  try {
    MessageWriter answer;
    MessageReader reader(std::move(request.bytes));
    carry_out(static_cast<RemoteCall>(request.header.kind & ~kPosted), context, reader, answer);
    return {Status::done, answer.bytes()};
  } catch (const DeviceError& error) {
    return {Status::device_error, MessageWriter().put(error.kind()).put_text(error.what()).bytes()};
  } catch (const std::exception& error) {
    return {Status::error, MessageWriter().put_text(error.what()).bytes()};
  }
}

Header header_of(Status status) { return {0, getpid(), static_cast<std::uint32_t>(status), 0}; }

}  // namespace

Server::Server(Introduction introduction, OpenDevice open,
               std::function<std::vector<std::string>()> notes)
    : introduction_(std::move(introduction)),
      open_(std::move(open)),
      take_notes_(std::move(notes)) {}

void Server::answer_all(const OwnedDescriptor& socket, const SharedBuffer& buffer) {
  const pid_t process = getpid();
  const Context context{*this, buffer};
  Inbox inbox(socket);
  // the first posted request that failed; later ones may depend on it
  std::optional<ServedAnswer> failed;
  while (std::optional<Message> request = inbox.receive()) {
    Header header = request->header;
    const bool posted = (header.kind & kPosted) != 0;
    const auto call = static_cast<RemoteCall>(header.kind);
    const bool always = call == RemoteCall::settle || call == RemoteCall::close;
    if (posted && failed) continue;
    ServedAnswer answer = failed && !always ? *std::exchange(failed, std::nullopt)
                                            : answer_to(context, std::move(*request));
    // The plug-in has forked, and this is the copy: no request waits for it.
    if (getpid() != process) _exit(0);
    if (posted) {
      if (answer.status != Status::done) failed = std::move(answer);
      continue;
    }
    // An error of this device's work must not be reported for the next device.
    if (call == RemoteCall::close) failed.reset();
    header.process = process;
    header.kind = static_cast<std::uint32_t>(answer.status);
    if (!send_message(socket, header, answer.bytes)) return;
  }
}

Properties Server::properties_of(std::string_view platform) const {
  return open_(platform, {})->properties();
}

std::uint64_t Server::open(std::string_view platform, const Conditions& conditions) {
  std::unique_ptr<Device> device = open_(platform, conditions);
  const std::lock_guard lock(mutex_);
  devices_[next_] = std::move(device);
  return next_++;
}

void Server::close(std::uint64_t id) {
  std::unique_ptr<Device> closed;  // outside the lock: closing may wait for pending work
  const std::lock_guard lock(mutex_);
  const auto found = devices_.find(id);
  if (found == devices_.end()) throw ProtocolError("an unknown device");
  closed = std::move(found->second);
  devices_.erase(found);
}

Device& Server::device(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = devices_.find(id);
  if (found == devices_.end()) throw ProtocolError("an unknown device");
  return *found->second;
}

const OpEntry& Server::entry_of(MessageReader& request) const {
  const auto index = request.get<std::uint32_t>();
  if (index >= introduction_.entries.size()) throw ProtocolError("an unknown entry");
  return introduction_.entries[index];
}

Server::CallParams::CallParams(std::string_view op, MessageReader& request) {
  const std::size_t size = request.count(1);
  if (size > sizeof params) throw ProtocolError("parameters that are too long");
  const std::byte* const first = request.take(size);
  Bytes bytes(first, first + size);
  if (plan_of(op, bytes) != nullptr) {
    plan = request.get<plumb_mla_plan>();
    set_plan(bytes, &plan);
  }
  std::memcpy(params, bytes.data(), bytes.size());
}

void Server::launch(MessageReader& request, MessageWriter& answer) {
  const EntryCall call(entry_of(request), request);
  answer.put(call.entry.launch(call.params));
}

void Server::plan(MessageReader& request, MessageWriter& answer) {
  const EntryCall call(entry_of(request), request);
  answer.put(call.entry.plan(call.params));
}

void Server::numerics(MessageReader& request, MessageWriter& answer) {
  const EntryCall call(entry_of(request), request);
  answer.put(call.entry.declared(call.params));
}

void Server::state_create(MessageReader& request, MessageWriter& answer) {
  const EntryCall call(entry_of(request), request);
  answer.put<std::uint64_t>(reinterpret_cast<std::uintptr_t>(call.entry.state_create(call.params)));
}

void Server::state_destroy(MessageReader& request, MessageWriter&) {
  const OpEntry& entry = entry_of(request);
  entry.state_destroy(
      reinterpret_cast<void*>(static_cast<std::uintptr_t>(request.get<std::uint64_t>())));
}

void Server::call_own_kernel(MessageReader& request, MessageWriter& answer) {
  const auto call = request.get<OwnKernelCall>();
  const auto own = request.get<std::uint32_t>();
  if (own >= kOwnCount) throw ProtocolError("an unknown kernel of plumb's own");
  const CallParams params(kOwnKernels[own].name, request);
  answer.put(call_own(call, own, params.params));
}

void serve_connections(Server& server, const OwnedDescriptor& control) {
  MessageWriter about;
  const Introduction& introduction = server.introduction();
  about.put_text(introduction.name).put_text(introduction.version);
  about.put<std::uint64_t>(introduction.entries.size());
  for (const OpEntry& entry : introduction.entries) {
    about.put_text(entry.op).put_text(entry.contract);
    about.put(entry.numerics).put(entry.numerics_of != nullptr);
    about.put(entry.plan != nullptr).put(entry.state_create != nullptr);
  }
  if (!send_message(control, header_of(Status::done), about.bytes())) return;
  while (auto connection = receive_descriptors(control)) {
    std::thread([&server, ends = std::move(*connection)]() mutable {
      auto& [socket, memory] = ends;
      const SharedBuffer buffer(std::move(memory));
      server.answer_all(socket, buffer);
    }).detach();
  }
}

void refuse_to_serve(const OwnedDescriptor& control, const std::string& why) {
  send_message(control, header_of(Status::error), MessageWriter().put_text(why).bytes());
}

}  // namespace plumb::device::remote
