// SPDX-License-Identifier: Apache-2.0
//
// In the process that loads a plug-in: its devices, and what is asked of them and of the plug-in.
// Knows nothing of cases: it gets inputs and gives back bytes.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/plugin/known_ops.h"
#include "device/remote/parameters.h"
#include "device/remote/socket.h"

namespace plumb::device::remote {

using OpenDevice =
    std::function<std::unique_ptr<Device>(std::string_view platform, const Conditions&)>;

// What the other process has to know of the implementation, in an answer to no request.
struct Introduction {
  std::string name, version;
  std::vector<OpEntry> entries;  // their `op` lasts as long as the program
};

class Server {
 public:
  Server(Introduction introduction, OpenDevice open,
         std::function<std::vector<std::string>()> notes);

  const Introduction& introduction() const { return introduction_; }
  // Answers until the other end hangs up. For a thread of each connection.
  void answer_all(const OwnedDescriptor& socket, const SharedBuffer& buffer);

  // For the calls.
  Properties properties_of(std::string_view platform) const;
  std::uint64_t open(std::string_view platform, const Conditions& conditions);
  void close(std::uint64_t device);
  Device& device(std::uint64_t id);
  void launch(MessageReader& request, MessageWriter& answer);
  void plan(MessageReader& request, MessageWriter& answer);
  void numerics(MessageReader& request, MessageWriter& answer);
  void state_create(MessageReader& request, MessageWriter& answer);
  void state_destroy(MessageReader& request, MessageWriter& answer);
  void call_own_kernel(MessageReader& request, MessageWriter& answer);
  std::vector<std::string> take_notes() const { return take_notes_(); }

 private:
  // Parameters of a call as a request has them, where launchers can read them.
  struct CallParams {
    CallParams(std::string_view op, MessageReader& request);
    CallParams(const CallParams&) = delete;
    CallParams& operator=(const CallParams&) = delete;

    alignas(std::max_align_t) std::byte params[kMostParamBytes];
    plumb_mla_plan plan;  // of parameters that have one
  };
  struct EntryCall : CallParams {
    EntryCall(const OpEntry& of, MessageReader& request) : CallParams(of.op, request), entry(of) {}

    const OpEntry& entry;
  };
  const OpEntry& entry_of(MessageReader& request) const;

  Introduction introduction_;
  OpenDevice open_;
  std::function<std::vector<std::string>()> take_notes_;
  std::mutex mutex_;  // of what follows
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, std::unique_ptr<Device>> devices_;
};

// The whole life of that process: introduces itself over `control`, and serves each connection that
// comes through it on a thread of its own. Returns when the other end hangs up, with threads that
// still run: the caller ends the process at once.
void serve_connections(Server& server, const OwnedDescriptor& control);
// Instead: why the plug-in cannot be used.
void refuse_to_serve(const OwnedDescriptor& control, const std::string& why);

}  // namespace plumb::device::remote
