// SPDX-License-Identifier: Apache-2.0
//
// The process that loads a plug-in, as the process that judges sees it. Expectation, verdict and
// the inputs as they were filled never enter that process: it gets copies of inputs, and returns
// what its device holds.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/remote/connection.h"
#include "device/remote/own_kernels.h"

namespace plumb::device::remote {

// Why the plug-in cannot be used: one line.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Any number of threads may use it at once.
class PluginProcess : public std::enable_shared_from_this<PluginProcess> {
 public:
  // command: this program, with the arguments that make it serve a plug-in on standard input.
  // Throws Refused, Died, std::system_error.
  static std::shared_ptr<PluginProcess> start(std::vector<std::string> command);
  ~PluginProcess();
  PluginProcess(const PluginProcess&) = delete;
  PluginProcess& operator=(const PluginProcess&) = delete;

  // Launchers get parameters alone. They call the plug-in of the process that was started or
  // activated last.
  const Implementation& implementation() const { return table_; }
  void activate();
  static std::shared_ptr<PluginProcess> active();
  // The plug-in's entries without the ops `left_out`, and plumb's own kernels for all other ops,
  // which run in its process too.
  Implementation with_own(std::string_view platform, const std::set<std::string>& left_out) const;
  const std::string& version() const { return version_; }  // "" if it names none
  // The device must not outlive this object. Throws what open_device throws, and Died.
  std::unique_ptr<Device> open(std::string_view platform, const Conditions& conditions);
  // Throws what open_device throws.
  const Properties& properties_of(std::string_view platform);
  // Notes about the plug-in's calls since the last time, one line each. Throws Died.
  std::vector<std::string> take_notes();
  // The op of the latest launch that the plug-in did not support. Reading clears it.
  std::string take_unsupported();
  bool has_died() const;
  pid_t id() const { return life_->id(); }

  // The calling thread's connection, made at its first use. Throws Died.
  Connection& connection();
  // Functions of the op's entry, called in the plug-in's process.
  plumb_status launch(std::size_t op, const void* params);
  plumb_status plan(std::size_t op, const void* params);
  plumb_numerics numerics(std::size_t op, const void* params);
  void* create_state(std::size_t op, const void* params);
  void destroy_state(std::size_t op, void* state) noexcept;
  plumb_status call_own(OwnKernelCall call, std::size_t position, const void* params);

 private:
  static constexpr auto kNoOp = static_cast<std::size_t>(-1);
  explicit PluginProcess(std::vector<std::string> command);
  void start_process(std::vector<std::string>& command);
  void read_introduction();
  Properties ask_properties(std::string_view platform);
  MessageReader call_entry(RemoteCall call, std::size_t op, const void* params);

  std::shared_ptr<ProcessLife> life_;
  OwnedDescriptor control_;
  std::mutex control_mutex_;
  std::shared_ptr<RequestTraffic> traffic_ = std::make_shared<RequestTraffic>();
  std::mutex properties_mutex_;
  std::map<std::string, std::unique_ptr<Properties>> properties_;
  std::atomic<std::size_t> unsupported_ = kNoOp;  // last op that returned PLUMB_UNSUPPORTED
  std::string version_;
  std::vector<std::uint32_t> entry_of_op_;  // indexed by position_of_op; last: the occupancy hog
  Implementation table_;
};

}  // namespace plumb::device::remote
