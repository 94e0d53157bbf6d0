// SPDX-License-Identifier: Apache-2.0
#include "faults/faults.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <utility>

#include "device/forwarding_device.h"
#include "faults/dead_replay.h"
#include "faults/replaced_op.h"
#include "plumb_mutant_list.h"

namespace plumb::device {
#define PLUMB_DECLARE_MUTANT(name, op, ...) \
  namespace mutant_##name {                 \
    device::OpEntry op();                   \
  }
PLUMB_FOR_EACH_MUTANT(PLUMB_DECLARE_MUTANT)
#undef PLUMB_DECLARE_MUTANT
#ifdef PLUMB_CUDA_MUTANTS
#define PLUMB_DECLARE_MUTANT(name, op, ...) \
  namespace cuda_mutant_##name {            \
    device::OpEntry op();                   \
  }
PLUMB_FOR_EACH_MUTANT(PLUMB_DECLARE_MUTANT)
#undef PLUMB_DECLARE_MUTANT
#define PLUMB_CUDA_MUTANT(name, op) device::cuda_mutant_##name::op()
#else
#define PLUMB_CUDA_MUTANT(name, op) \
  device::OpEntry {}
#endif
}  // namespace plumb::device

namespace plumb::cases {

namespace {

std::vector<std::string> platforms_of(std::string_view list, [[maybe_unused]] bool real) {
  std::vector<std::string> words;
  std::istringstream stream{std::string(list)};
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  if (words.empty()) words = {"sim-sm90", "sim-gfx942", "sim-gfx950"};
#ifdef PLUMB_CUDA_MUTANTS
  if (real) return with_real_counterparts(words);
#endif
  return words;
}

// Captures in CUDA's global mode: while one is in progress, an allocation by any thread is refused,
// and invalidates all captures in progress.
class GlobalCaptures final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  void* allocate(std::size_t bytes, std::string_view label) override {
    const std::lock_guard lock(mutex_);
    if (in_progress_.empty()) return ForwardingDevice::allocate(bytes, label);
    for (auto& [stream, spoilt] : in_progress_) spoilt = true;
    throw device::DeviceError(device::ErrorKind::capture_unsupported,
                              "allocate: another thread captures in global mode");
  }
  void begin_capture(device::Stream stream) override {
    ForwardingDevice::begin_capture(stream);
    const std::lock_guard lock(mutex_);
    in_progress_[stream] = false;
  }
  device::Graph end_capture(device::Stream stream) override {
    const device::Graph graph = ForwardingDevice::end_capture(stream);
    const std::lock_guard lock(mutex_);
    const bool spoilt = in_progress_.extract(stream).mapped();
    if (!spoilt) return graph;
    throw device::DeviceError(device::ErrorKind::capture_invalid,
                              "end_capture: another thread has allocated meanwhile");
  }

 private:
  std::mutex mutex_;
  std::map<device::Stream, bool> in_progress_;
};

template <class Decorator>
RunOptions with_device(RunOptions options) {
  options.open = [open = options.open](std::string_view platform,
                                       const device::Conditions& conditions) {
    return std::unique_ptr<device::Device>(new Decorator(open(platform, conditions)));
  };
  return options;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Mutant& mutant) { return out << mutant.name; }

const std::vector<Mutant>& all_mutants() {
#define PLUMB_MUTANT(name, op, case_id, says, why, platforms, real) \
  {#name,                                                           \
   #op,                                                             \
   case_id,                                                         \
   says,                                                            \
   why,                                                             \
   platforms_of(platforms, real),                                   \
   device::mutant_##name::op(),                                     \
   PLUMB_CUDA_MUTANT(name, op)},
  static const std::vector<Mutant> mutants{PLUMB_FOR_EACH_MUTANT(PLUMB_MUTANT)};
#undef PLUMB_MUTANT
  return mutants;
}

std::vector<std::string> with_real_counterparts(std::vector<std::string> simulated) {
  const bool waves_of_32 =
      std::find(simulated.begin(), simulated.end(), "sim-sm90") != simulated.end();
  for (const std::string& platform : device::known_platforms()) {
    const bool real = platform.starts_with("cuda-");
    if (real && waves_of_32 && device::why_unavailable(platform).empty()) {
      simulated.push_back(platform);
    }
  }
  return simulated;
}

RunOptions with_mutant(RunOptions options, const Mutant& mutant) {
  options.implementation = with_op_replaced({mutant.entry, mutant.cuda_entry});
  return options;
}

RunOptions with_dead_replay(RunOptions options) {
  return with_device<DeadReplay>(std::move(options));
}

RunOptions with_global_captures(RunOptions options) {
  return with_device<GlobalCaptures>(std::move(options));
}

RunOptions with_warm_up_state_kept(RunOptions options) {
  options.fresh_state_for_capture = false;
  return options;
}

RunOptions with_runners_sharing(RunOptions options, RunOptions::Sharing what) {
  options.shared_by_runners = what;
  return options;
}

}  // namespace plumb::cases
