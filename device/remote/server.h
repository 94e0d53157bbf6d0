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
  void numerics(MessageReader& request, MessageWriter& answer);
  std::vector<std::string> take_notes() const { return take_notes_(); }

 private:
  // A launcher may keep the address of a plan as long as the device lives. Known by its address in
  // the other process.
  plumb_mla_plan& plan_at(std::uint64_t address);
  // A call of an entry as a request has it, where launchers can read it.
  struct EntryCall {
    const OpEntry* entry = nullptr;
    alignas(std::max_align_t) std::byte params[kMostParamBytes];
    plumb_mla_plan* plan = nullptr;  // null: the call has none
  };
  EntryCall entry_call(MessageReader& request);

  Introduction introduction_;
  OpenDevice open_;
  std::function<std::vector<std::string>()> take_notes_;
  std::mutex mutex_;  // of what follows
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, std::unique_ptr<Device>> devices_;
  std::map<std::uint64_t, std::unique_ptr<plumb_mla_plan>> plans_;
};

// The whole life of that process: introduces itself over `control`, and serves each connection that
// comes through it on a thread of its own. Returns when the other end hangs up, with threads that
// still run: the caller ends the process at once.
void serve_connections(Server& server, const OwnedDescriptor& control);
// Instead: why the plug-in cannot be used.
void refuse_to_serve(const OwnedDescriptor& control, const std::string& why);

}  // namespace plumb::device::remote
