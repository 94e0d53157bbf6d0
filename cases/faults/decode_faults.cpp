// SPDX-License-Identifier: Apache-2.0
#include "cases/faults/decode_faults.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "cases/faults/faults.h"
#include "device/forwarding_device.h"

namespace plumb::cases {

namespace {

using device::decode::CapturePolicy;
using device::decode::InputsPolicy;
using device::decode::MetadataPolicy;
using Inject = std::function<DecodeSetup(DecodeSetup)>;

struct WarmUpStateCaptured final : CapturePolicy {
  Choice choose(const State& warm_up, const MakeState&) const override {
    return {warm_up, warm_up};
  }
};

struct FreshStateFreed final : CapturePolicy {
  Choice choose(const State& warm_up, const MakeState& make) const override {
    return {make(), warm_up};
  }
};

struct TemporariesHandedOut final : MetadataPolicy {
  bool hands_out_persistent() const override { return false; }
};
// So that what is left behind is an earlier step's: captures and three steps make copies before.
constexpr std::int64_t kCopiesBefore = 6;

struct IndicesNotCopied final : MetadataPolicy {
  bool copies_indices(std::int64_t copies) const override { return copies < kCopiesBefore; }
};
struct IndptrNotCopied final : MetadataPolicy {
  bool copies_indptr(std::int64_t copies) const override { return copies < kCopiesBefore; }
};

struct LiveRowsSent final : InputsPolicy {
  std::int64_t rows_sent(std::int64_t live, std::int64_t) const override { return live; }
};
struct PaddingWritesSlot0 final : InputsPolicy {
  std::int64_t padding_slot() const override { return 0; }
};

template <class Policy>
Inject capture() {
  return [](DecodeSetup setup) {
    setup.policies.capture = std::make_shared<Policy>();
    return setup;
  };
}
template <class Policy>
Inject metadata() {
  return [](DecodeSetup setup) {
    setup.policies.metadata = std::make_shared<Policy>();
    return setup;
  };
}
template <class Policy>
Inject inputs() {
  return [](DecodeSetup setup) {
    setup.policies.inputs = std::make_shared<Policy>();
    setup.conditions.policy = device::Policy::late;
    return setup;
  };
}

class DeadReplay final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  void replay(device::GraphExec, device::Stream) override {}
};

DecodeSetup with_dead_device(DecodeSetup setup) {
  setup.wrap = [](std::unique_ptr<device::Device> inner) -> std::unique_ptr<device::Device> {
    return std::make_unique<DeadReplay>(std::move(inner));
  };
  return setup;
}

Inject mutant(std::string_view name) {
  const auto& all = all_mutants();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Mutant& m) { return m.name == name; });
  if (found == all.end()) throw std::invalid_argument("no mutant " + std::string(name));
  return [found](DecodeSetup setup) {
    setup.implementation = with_mutant(RunOptions{}, *found).implementation;
    return setup;
  };
}

constexpr ScheduleShape kSteady{Traffic::steady, Lengths::mixed, 3, 4, 1};
constexpr ScheduleShape kShrink{Traffic::shrink, Lengths::random, 4, 4, 1};
constexpr ScheduleShape kLonger{Traffic::steady, Lengths::equal, 8, 4, 2};
constexpr ScheduleShape kGrowing{Traffic::steady, Lengths::short_ones, 8, 4, 2};
constexpr ScheduleShape kRandom{Traffic::random, Lengths::random, 6, 4, 1};

std::vector<DecodeFault> make_faults() {
  const auto kernel = [](std::string name, std::string stands_for, std::string op) {
    return DecodeFault{
        name,    std::move(stands_for), std::move(op), Detector::reference, Detector::eager,
        kRandom, mutant(name)};
  };
  return {
      {"replay_does_nothing", "hazards 37: the graph never ran", "replay", Detector::ran,
       Detector::path, kSteady, with_dead_device},
      {"warm_up_state_captured", "vLLM #42444: the planner is not part of the graph",
       "sparse_mla_decode", Detector::path, Detector::inputs, kSteady,
       capture<WarmUpStateCaptured>()},
      {"captured_state_freed", "vLLM #42444: the warm-up's state is kept, the captured one freed",
       "sparse_mla_decode", Detector::address, Detector::path, kSteady, capture<FreshStateFreed>()},
      {"ragged_metadata_not_persistent", "vLLM #42604: a graph reads another step's addresses",
       "sparse_mla_decode", Detector::eager, Detector::path, kSteady,
       metadata<TemporariesHandedOut>()},
      {"ragged_indices_not_copied", "vLLM #42604: the graph's buffer keeps old indices",
       "copy_ragged_to_graph_buffers", Detector::candidates, Detector::reference, kLonger,
       metadata<IndicesNotCopied>()},
      {"ragged_indptr_not_copied", "vLLM #42604: indices are copied, indptr is stale",
       "copy_ragged_to_graph_buffers", Detector::candidates, Detector::reference, kGrowing,
       metadata<IndptrNotCopied>()},
      {"block_table_of_live_rows_only", "hazards 8: rows behind the live ones keep old blocks",
       "inputs", Detector::inputs, Detector::reference, kShrink, inputs<LiveRowsSent>()},
      {"padding_writes_slot_0", "hazards 3: padding rows write into the cache", "inputs",
       Detector::inputs, Detector::reference, kShrink, inputs<PaddingWritesSlot0>()},
      kernel("ragged_indptr_one_off", "vLLM #42604: indptr one off",
             "build_ragged_indices_from_dense"),
      kernel("k_cache_minus_one_is_slot_0", "hazards 3: -1 lands in slot 0",
             "quantize_and_insert_k_cache"),
      kernel("swa_tail_not_cleared", "hazards 18: columns behind a shorter row keep old slots",
             "swa_decode_metadata"),
      kernel("top_k_pads_with_zero", "vLLM #42810: padding with 0 instead of -1",
             "top_k_per_row_decode"),
      kernel("mhc_fused_comb_transposed", "hazards J8: the mixing matrix is transposed",
             "mhc_fused_post_pre"),
      kernel("hc_head_mean_square_over_hidden", "hazards 35: RMS over H instead of 4 H", "hc_head"),
      kernel("mla_sink_per_split", "hazards K: the sink counts once per split",
             "sparse_mla_decode"),
      kernel("mla_minus_one_read_as_slot_0", "hazards A3: a hole attends slot 0",
             "sparse_mla_decode"),
      kernel("router_padding_mask_ignored", "hazards A1: padding rows are routed",
             "sqrt_softplus_topk"),
  };
}

}  // namespace

const std::vector<DecodeFault>& all_decode_faults() {
  static const std::vector<DecodeFault> faults = make_faults();
  return faults;
}

}  // namespace plumb::cases
