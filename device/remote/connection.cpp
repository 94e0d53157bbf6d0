// SPDX-License-Identifier: Apache-2.0
#include "device/remote/connection.h"

#include <signal.h>

#include <optional>

#include "device/device.h"

namespace plumb::device::remote {

namespace {

// Throws the error that is in the answer of a failed call.
[[noreturn]] void throw_error(Status status, MessageReader& answer) {
  if (status == Status::error) throw std::runtime_error(answer.text());
  const auto fault = answer.get<ErrorKind>();
  throw DeviceError(fault, answer.text());
}

}  // namespace

bool ProcessLife::is_running() {
  const std::lock_guard lock(mutex_);
  return !child_.has_ended();
}

bool ProcessLife::has_died() {
  const std::lock_guard lock(mutex_);
  return !why_.empty();
}

void ProcessLife::die(const std::string& otherwise) {
  constexpr double kPatience = 0.2;  // seconds; a process that ends closes its sockets first
  const std::lock_guard lock(mutex_);
  if (why_.empty()) {
    const bool ended = child_.wait(process::Deadline::in(kPatience), true);
    why_ = ended ? "its process " + child_.ending().text() : otherwise;
    child_.send_signal(SIGKILL);
  }
  throw Died(why_);
}

Connection::Connection(OwnedDescriptor socket, std::shared_ptr<ProcessLife> life,
                       std::shared_ptr<RequestTraffic> traffic)
    : socket_(std::move(socket)), life_(std::move(life)), traffic_(std::move(traffic)) {
  const std::lock_guard lock(traffic_->mutex);
  const bool second = ++traffic_->count == 2;
  for (Connection* other : traffic_->connections) {
    if (second) other->call(RemoteCall::settle);
  }
  traffic_->connections.push_back(this);
}

Connection::~Connection() {
  const std::lock_guard lock(traffic_->mutex);
  --traffic_->count;
  std::erase(traffic_->connections, this);
}

MessageReader Connection::call(RemoteCall what, const MessageWriter& request) {
  const std::lock_guard lock(mutex_);
  return call_locked(what, request);
}

void Connection::post(RemoteCall what, const MessageWriter& request) {
  const std::lock_guard lock(mutex_);
  if (traffic_->count > 1) {
    call_locked(what, request);
    return;
  }
  ++traffic_->requests;
  const Header header{++number_, 0, static_cast<std::uint32_t>(what) | kPosted,
                      request.bytes().size()};
  const auto* begin = reinterpret_cast<const std::byte*>(&header);
  posted_.insert(posted_.end(), begin, begin + sizeof header);
  posted_.insert(posted_.end(), request.bytes().begin(), request.bytes().end());
  constexpr std::size_t kMostPosted = 2 * kInlineBytes;
  if (posted_.size() > kMostPosted) flush();
}

void Connection::flush() {
  if (posted_.empty()) return;
  if (!send_bytes(socket_, posted_)) life_->die("its process hung up");
  posted_.clear();
}

MessageReader Connection::call_locked(RemoteCall what, const MessageWriter& request) {
  if (life_->has_died()) life_->die("");
  ++traffic_->requests;
  flush();
  const Header header{++number_, 0, static_cast<std::uint32_t>(what), 0};
  const auto is_running = [this] { return life_->is_running(); };
  if (!send_message(socket_, header, request.bytes())) life_->die("its process hung up");
  std::optional<Message> message = inbox_.receive(is_running);
  if (!message) life_->die("its process hung up");
  if (message->header.number != number_ || message->header.process != life_->id()) {
    life_->die("its process answered another request");
  }
  MessageReader answer(std::move(message->bytes));
  const auto status = static_cast<Status>(message->header.kind);
  if (status != Status::done) throw_error(status, answer);
  return answer;
}

}  // namespace plumb::device::remote
