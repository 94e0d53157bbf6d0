// SPDX-License-Identifier: Apache-2.0
//
// One thread's connection to the process that loads a plug-in. That process serves each connection
// on a thread of its own, so that a capture stays with the thread that began it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/remote/socket.h"
#include "process/child.h"

namespace plumb::device::remote {

// Whether the process runs, and how it ended. The destructor ends it with all processes that it has
// forked. Several threads may use it at once.
class ProcessLife {
 public:
  explicit ProcessLife(const process::Command& command) : child_(command) {}

  pid_t id() const { return child_.id(); }
  bool is_running();
  bool has_died();
  // Ends the process and throws Died with the reason: how it ended by itself, or `otherwise`.
  [[noreturn]] void die(const std::string& otherwise);

 private:
  std::mutex mutex_;
  process::Child child_;
  std::string why_;  // reason of its death; empty while it lives
};

// Shared by all connections to one process.
struct RequestTraffic {
  std::atomic<std::uint64_t> requests = 0;
  std::atomic<int> count = 0;
  std::mutex mutex;
  std::vector<class Connection*> connections;
};

// State after a copy that was complete on return: this stream of this device had no pending work
// when this many requests had been sent to the process.
struct Drained {
  std::uint64_t device = 0;
  void* stream = nullptr;
  std::uint64_t requests = 0;
  bool operator==(const Drained&) const = default;
};

class Connection {
 public:
  Connection(OwnedDescriptor socket, std::shared_ptr<ProcessLife> life,
             std::shared_ptr<RequestTraffic> traffic);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Sends a request and waits for the answer. Throws what the call threw there (DeviceError, or
  // another exception as std::runtime_error), and Died.
  MessageReader call(RemoteCall what, const MessageWriter& request = {});
  // Makes a call without a result. While this is the only connection, the request is sent with the
  // next call, or once many wait, and a later call throws its error. With several connections it is
  // sent at once and its answer awaited, because the order of their requests would be random.
  void post(RemoteCall what, const MessageWriter& request);

  const SharedBuffer& buffer() const { return buffer_; }
  // Number of requests sent to the process by all threads.
  std::uint64_t requests() const { return traffic_->requests; }
  // State after this thread's latest copy that was complete on return.
  const Drained& drained() const { return drained_; }
  void note_drained(const Drained& drained) { drained_ = drained; }

 private:
  MessageReader call_locked(RemoteCall what, const MessageWriter& request);
  void flush();

  OwnedDescriptor socket_;
  SharedBuffer buffer_;
  std::shared_ptr<ProcessLife> life_;
  std::shared_ptr<RequestTraffic> traffic_;
  Drained drained_;
  std::mutex mutex_;  // guards the members below
  Inbox inbox_{socket_};
  std::uint64_t number_ = 0;
  Bytes posted_;
};

}  // namespace plumb::device::remote
