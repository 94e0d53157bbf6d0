// SPDX-License-Identifier: Apache-2.0
//
// Used in the process that loads a plug-in: holds its devices, and answers requests to them and to
// the plug-in. Knows no cases: it gets inputs and returns bytes.
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

// Describes the implementation to the other process. Sent without a request.
struct Introduction {
  std::string name, version;
  std::vector<OpEntry> entries;  // their `op` must point to text that is never freed
};

class Server {
 public:
  Server(Introduction introduction, OpenDevice open,
         std::function<std::vector<std::string>()> notes);

  const Introduction& introduction() const { return introduction_; }
  // Answers requests until the other end hangs up. Each connection has a thread for it.
  void answer_all(const OwnedDescriptor& socket, const SharedBuffer& buffer);

  // Used by device_calls.cpp.
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
  // Parameters of a request, copied to where launchers can read them.
  struct CallParams {
    CallParams(std::string_view op, MessageReader& request);
    CallParams(const CallParams&) = delete;
    CallParams& operator=(const CallParams&) = delete;

    alignas(std::max_align_t) std::byte params[kMostParamBytes];
    plumb_mla_plan plan;  // used if the parameters have a tile plan
  };
  struct EntryCall : CallParams {
    EntryCall(const OpEntry& of, MessageReader& request) : CallParams(of.op, request), entry(of) {}

    const OpEntry& entry;
  };
  const OpEntry& entry_of(MessageReader& request) const;

  Introduction introduction_;
  OpenDevice open_;
  std::function<std::vector<std::string>()> take_notes_;
  std::mutex mutex_;  // guards the members below
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, std::unique_ptr<Device>> devices_;
};

// Main loop of that process: introduces itself over `control`, and serves each connection that
// comes through it on a thread of its own. Returns when the other end hangs up, while threads still
// run: the caller has to end the process at once.
void serve_connections(Server& server, const OwnedDescriptor& control);
// Sent instead of an introduction: why the plug-in cannot be used.
void refuse_to_serve(const OwnedDescriptor& control, const std::string& why);

}  // namespace plumb::device::remote
