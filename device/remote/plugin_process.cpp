// SPDX-License-Identifier: Apache-2.0
#include "device/remote/plugin_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "device/background_load/occupancy_hog.h"
#include "device/plugin/known_ops.h"
#include "device/remote/parameters.h"
#include "device/remote/remote_device.h"

namespace plumb::device::remote {

namespace {

constexpr std::string_view kHog = "occupancy_hog";
constexpr std::size_t kHogPosition = kMostOps;
constexpr std::size_t kLaunchable = kMostOps + 1;
constexpr auto kNone = static_cast<std::uint32_t>(-1);

std::size_t position_of(std::string_view op) {
  if (op == kHog) return kHogPosition;
  const std::size_t position = position_of_op(op);
  if (position == kMostOps) throw ProtocolError("an unknown op");
  return position;
}
std::string_view name_at(std::size_t position) {
  return position == kHogPosition ? kHog : op_at(position).name;
}
std::size_t param_bytes(std::size_t position) {
  return position == kHogPosition ? sizeof(plumb_occupancy_hog_params)
                                  : op_at(position).param_bytes;
}

// Global, because a launcher gets the parameters only.
std::mutex active_mutex;
std::weak_ptr<PluginProcess> last_active;

// Functions that the op's entry in the plug-in's process has.
struct EntryFunctions {
  bool numerics_of = false, plan = false, state = false;
};

template <std::size_t kPosition>
OpEntry entry_at(const plumb_numerics& numerics, EntryFunctions has) {
  OpEntry made{.op = name_at(kPosition),
               .launch =
                   [](const void* params) {
                     const auto process = PluginProcess::active();
                     return process ? process->launch(kPosition, params) : PLUMB_LAUNCH_FAILED;
                   },
               .numerics = numerics};
  if (has.numerics_of) {
    made.numerics_of = [](const void* params, plumb_numerics* own) {
      if (const auto process = PluginProcess::active()) *own = process->numerics(kPosition, params);
    };
  }
  if (has.plan) {
    made.plan = [](const void* params) {
      const auto process = PluginProcess::active();
      return process ? process->plan(kPosition, params) : PLUMB_LAUNCH_FAILED;
    };
  }
  if (has.state) {
    made.state_create = [](const void* params) -> void* {
      const auto process = PluginProcess::active();
      return process ? process->create_state(kPosition, params) : nullptr;
    };
    made.state_destroy = [](void* state) {
      if (const auto process = PluginProcess::active()) process->destroy_state(kPosition, state);
    };
  }
  return made;
}

using EntryMaker = OpEntry (*)(const plumb_numerics& numerics, EntryFunctions has);
template <std::size_t... kPosition>
constexpr std::array<EntryMaker, kLaunchable> make_entries(std::index_sequence<kPosition...>) {
  return {&entry_at<kPosition>...};
}
constexpr std::array<EntryMaker, kLaunchable> kEntryMakers =
    make_entries(std::make_index_sequence<kLaunchable>());

struct OwnConnection {
  std::weak_ptr<PluginProcess> process;
  std::unique_ptr<Connection> connection;
};
thread_local OwnConnection own;

}  // namespace

std::shared_ptr<PluginProcess> PluginProcess::start(std::vector<std::string> command) {
  std::shared_ptr<PluginProcess> process(new PluginProcess(std::move(command)));
  process->activate();
  return process;
}

void PluginProcess::activate() {
  const std::lock_guard lock(active_mutex);
  last_active = weak_from_this();
}

std::shared_ptr<PluginProcess> PluginProcess::active() {
  const std::lock_guard lock(active_mutex);
  return last_active.lock();
}

Implementation PluginProcess::with_own(std::string_view platform,
                                       const std::set<std::string>& left_out) const {
  return with_own_kernels(table_, launched_there(builtin_implementation(platform)), left_out);
}

PluginProcess::PluginProcess(std::vector<std::string> command) {
  start_process(command);
  read_introduction();
}

PluginProcess::~PluginProcess() = default;

void PluginProcess::start_process(std::vector<std::string>& command) {
  auto [near, far] = connected_sockets();
  wake_now_and_then(near);
  process::Command child;
  child.words = std::move(command);
  child.in = process::Redirection::to_descriptor(far.number());
  // In the worker's group, which is ended as a whole: so are copies of the process that a plug-in
  // has forked.
  child.own_group = false;
  life_ = std::make_shared<ProcessLife>(child);
  control_ = std::move(near);
}

void PluginProcess::read_introduction() {
  const auto is_running = [this] { return life_->is_running(); };
  std::optional<Message> message = Inbox(control_).receive(is_running);
  if (!message) life_->die("its process hung up");
  MessageReader about(std::move(message->bytes));
  if (static_cast<Status>(message->header.kind) != Status::done) throw Refused(about.text());
  table_.name = about.text();
  version_ = about.text();
  const auto count = about.get<std::uint64_t>();
  entry_of_op_.assign(kLaunchable, kNone);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t position = position_of(about.text());
    entry_of_op_[position] = i;
    const std::string contract = about.text();
    const auto numerics = about.get<plumb_numerics>();
    EntryFunctions has;
    has.numerics_of = about.get<bool>();
    has.plan = about.get<bool>();
    has.state = about.get<bool>();
    table_.entries.push_back(kEntryMakers[position](numerics, has));
    table_.entries.back().contract = contract;
  }
}

bool PluginProcess::has_died() const { return life_->has_died() || !life_->is_running(); }

Connection& PluginProcess::connection() {
  if (own.process.lock().get() == this) return *own.connection;
  auto [near, far] = connected_sockets();
  wake_now_and_then(near);
  auto connection = std::make_unique<Connection>(std::move(near), life_, traffic_);
  {
    const std::lock_guard lock(control_mutex_);
    if (!send_descriptors(control_, far, connection->buffer().descriptor())) {
      life_->die("its process hung up");
    }
  }
  own = {weak_from_this(), std::move(connection)};
  return *own.connection;
}

const Properties& PluginProcess::properties_of(std::string_view platform) {
  const std::lock_guard lock(properties_mutex_);
  std::unique_ptr<Properties>& known = properties_[std::string(platform)];
  if (!known) known = std::make_unique<Properties>(ask_properties(platform));
  return *known;
}

Properties PluginProcess::ask_properties(std::string_view platform) {
  MessageReader answer =
      connection().call(RemoteCall::properties, MessageWriter().put_text(platform));
  Properties p;
  p.platform = answer.text();
  p.name = answer.text();
  p.runtime = answer.text();
  p.simulated = answer.get<bool>();
  p.wave_size = answer.get<int>();
  p.multiprocessors = answer.get<int>();
  p.max_threads_per_block = answer.get<int>();
  p.shared_bytes_per_block = answer.get<std::size_t>();
  p.memory_bytes = answer.get<std::size_t>();
  p.max_grid_x = answer.get<std::int64_t>();
  p.max_grid_y = answer.get<std::int64_t>();
  p.fp8 = answer.get<Fp8Dialect>();
  return p;
}

std::unique_ptr<Device> PluginProcess::open(std::string_view platform,
                                            const Conditions& conditions) {
  return std::make_unique<RemoteDevice>(shared_from_this(), platform, conditions);
}

std::vector<std::string> PluginProcess::take_notes() {
  MessageReader answer = connection().call(RemoteCall::take_notes);
  std::vector<std::string> notes(answer.count(8));
  for (std::string& note : notes) note = answer.text();
  return notes;
}

namespace {

// Puts the parameters without marks, and the tile plan if they have one.
void put_params(MessageWriter& request, std::string_view op, const void* params, std::size_t size,
                std::size_t seed = kNoSeed) {
  Bytes bytes = without_marks(params, size);
  if (seed != kNoSeed) {
    std::memcpy(bytes.data() + seed, static_cast<const std::byte*>(params) + seed,
                sizeof(std::uint64_t));
  }
  request.put<std::uint64_t>(bytes.size());
  request.put_bytes(bytes.data(), bytes.size());
  const plumb_mla_plan* const lent = plan_of(op, bytes);
  if (lent == nullptr) return;
  const Bytes plan = without_marks(lent, sizeof(plumb_mla_plan));
  request.put_bytes(plan.data(), plan.size());
}

}  // namespace

MessageReader PluginProcess::call_entry(RemoteCall call, std::size_t position, const void* params) {
  MessageWriter request;
  request.put(entry_of_op_[position]);
  put_params(request, name_at(position), params, param_bytes(position));
  try {
    return connection().call(call, request);
  } catch (const Died& death) {  // here the plug-in's host code runs
    throw Died(fmt::format("{}, in a call of {}", death.what(), name_at(position)));
  }
}

plumb_status PluginProcess::call_own(OwnKernelCall call, std::size_t position, const void* params) {
  const OwnKernel& kernel = kOwnKernels[position];
  MessageWriter request;
  request.put(call).put(static_cast<std::uint32_t>(position));
  put_params(request, kernel.name, params, kernel.param_bytes, kernel.seed_offset);
  return connection().call(RemoteCall::call_own, request).get<plumb_status>();
}

plumb_status PluginProcess::launch(std::size_t position, const void* params) {
  if (entry_of_op_[position] == kNone) return PLUMB_UNSUPPORTED;
  const auto status = call_entry(RemoteCall::launch, position, params).get<plumb_status>();
  if (status == PLUMB_UNSUPPORTED) unsupported_ = position;
  return status;
}

std::string PluginProcess::take_unsupported() {
  const std::size_t position = unsupported_.exchange(kNoOp);
  return position == kNoOp ? "" : std::string(name_at(position));
}

plumb_status PluginProcess::plan(std::size_t position, const void* params) {
  return call_entry(RemoteCall::plan, position, params).get<plumb_status>();
}

plumb_numerics PluginProcess::numerics(std::size_t position, const void* params) {
  return call_entry(RemoteCall::numerics, position, params).get<plumb_numerics>();
}

void* PluginProcess::create_state(std::size_t position, const void* params) {
  const auto state = call_entry(RemoteCall::state_create, position, params).get<std::uint64_t>();
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(state));
}

void PluginProcess::destroy_state(std::size_t position, void* state) noexcept {
  MessageWriter request;
  request.put(entry_of_op_[position]).put<std::uint64_t>(reinterpret_cast<std::uintptr_t>(state));
  try {
    connection().call(RemoteCall::state_destroy, request);
  } catch (const std::exception&) {  // reported before, by the call that found it
  }
}

}  // namespace plumb::device::remote
