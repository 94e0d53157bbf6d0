// SPDX-License-Identifier: Apache-2.0
#include "cases/faults/decode_faults.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cases/faults/decode_mutants.h"
#include "cases/faults/graph_policies.h"
#include "cases/faults/top_k_policies.h"
#include "cases/faults/v32_policies.h"
#include "device/forwarding_device.h"

namespace plumb::cases {

namespace {

using device::decode::GraphMode;
using device::decode::InputsPolicy;
using device::decode::MetadataPolicy;
using device::decode::Policies;
using Inject = std::function<DecodeSetup(DecodeSetup)>;

struct TemporariesHandedOut final : MetadataPolicy {
  bool hands_out_persistent() const override { return false; }
};
// So that what is left behind is an earlier step's: captures and three steps make copies before.
constexpr std::int64_t kCopiesBefore = 6;

class IndicesNotCopied final : public MetadataPolicy {
 public:
  explicit IndicesNotCopied(std::int64_t before = kCopiesBefore) : before_(before) {}
  bool copies_indices(std::int64_t copies) const override { return copies < before_; }

 private:
  std::int64_t before_;
};
class IndptrNotCopied final : public MetadataPolicy {
 public:
  explicit IndptrNotCopied(std::int64_t before = kCopiesBefore) : before_(before) {}
  bool copies_indptr(std::int64_t copies) const override { return copies < before_; }

 private:
  std::int64_t before_;
};

struct LiveRowsSent final : InputsPolicy {
  std::int64_t rows_sent(std::int64_t live, std::int64_t) const override { return live; }
};
struct PaddingWritesSlot0 final : InputsPolicy {
  std::int64_t padding_slot() const override { return 0; }
};

template <class Policy, class Base>
Inject policy(std::shared_ptr<const Base> Policies::* where, GraphMode mode = GraphMode::full) {
  return [where, mode](DecodeSetup setup) {
    setup.policies.*where = std::make_shared<Policy>();
    setup.mode = mode;
    return setup;
  };
}
template <class Policy>
Inject capture() {
  return policy<Policy>(&Policies::capture);
}
template <class Policy>
Inject metadata() {
  return policy<Policy>(&Policies::metadata);
}
// Copies end with this step, or with one of those before it.
template <class Policy>
std::vector<Inject> ends_before(std::int64_t builds) {
  constexpr std::int64_t kSteps = 4;
  std::vector<Inject> all;
  for (std::int64_t copies = builds; copies >= std::max<std::int64_t>(builds - kSteps, 0);
       --copies) {
    all.push_back([copies](DecodeSetup setup) {
      setup.policies.metadata = std::make_shared<Policy>(copies);
      return setup;
    });
  }
  return all;
}
template <class Policy>
Inject breaks() {
  return policy<Policy>(&Policies::breaks, GraphMode::breakable);
}
template <class Policy>
Inject shapes(GraphMode mode) {
  return policy<Policy>(&Policies::shapes, mode);
}
// Of steps with a drafter.
template <class Policy>
Inject modes() {
  return [](DecodeSetup setup) {
    setup.geometry.drafter = true;
    return policy<Policy>(&Policies::mode)(std::move(setup));
  };
}
// Decodes of up to four tokens, and prompts beside them.
template <class Policy>
Inject top_k() {
  return [](DecodeSetup setup) {
    setup.geometry = device::decode::small_geometry(4, 3, 32);
    setup.geometry.capture_sizes = {4, 16};
    return policy<Policy>(&Policies::top_k, GraphMode::full_and_piecewise)(std::move(setup));
  };
}
// Two steps at a time, of which the second comes while the first is in progress.
Inject own_transfers() {
  return [](DecodeSetup setup) {
    setup.in_flight = 2;
    setup.conditions.policy = device::Policy::interleaved;
    return policy<TransfersOnTheirOwn>(&Policies::transfers)(std::move(setup));
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

// A V3.2 step with room for padding.
Inject v32(device::decode::V32Policies policies) {
  return [policies](DecodeSetup setup) {
    setup.geometry = device::decode::small_v32_geometry(8);
    setup.geometry.max_batched_tokens = 48;  // so that requests are admitted in few parts
    setup.policies.v32 = policies;
    return setup;
  };
}
Inject v32_key(const ForgettingKey::Forget& forget) {
  device::decode::V32Policies policies;
  policies.plan_key = std::make_shared<ForgettingKey>(forget);
  return v32(policies);
}
template <class Policy>
Inject v32_buffers() {
  device::decode::V32Policies policies;
  policies.buffers = std::make_shared<Policy>();
  return v32(policies);
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
  return [by = decode_mutant(name)](DecodeSetup setup) {
    if (setup.platform.starts_with("cuda-") && by.cuda.launch == nullptr) {
      throw NotOnThisPlatform("built without PLUMB_CUDA_MUTANTS");
    }
    setup.implementation = with_op_replaced(by);
    return setup;
  };
}

constexpr ScheduleShape kSteady{Traffic::steady, Lengths::mixed, 3, 4, 1};
constexpr ScheduleShape kShrink{Traffic::shrink, Lengths::random, 4, 4, 1};
constexpr ScheduleShape kLonger{Traffic::steady, Lengths::equal, 8, 4, 2};
constexpr ScheduleShape kGrowing{Traffic::steady, Lengths::short_ones, 8, 4, 2};
constexpr ScheduleShape kPermuted{Traffic::permute, Lengths::mixed, 4, 5, 1};
constexpr ScheduleShape kThereAndBack{Traffic::there_and_back, Lengths::mixed, 4, 5, 1};
constexpr ScheduleShape kPrompts{Traffic::prompts, Lengths::short_ones, 4, 4, 3};
constexpr ScheduleShape kUneven{Traffic::uneven, Lengths::mixed, 4, 4, 1};
constexpr ScheduleShape kRandom{Traffic::random, Lengths::random, 6, 4, 1};

std::vector<DecodeFault> v32_faults() {
  const auto buffers = [](std::string name, std::string stands_for, Detector blind, Inject inject) {
    return DecodeFault{std::move(name),
                       "vLLM #42982: " + std::move(stands_for),
                       "v32_paged_metadata",
                       Detector::metadata,
                       blind,
                       kThereAndBack,
                       std::move(inject)};
  };
  return {
      {"v32_key_without_lengths", "vLLM #42982: a plan of other lengths is kept", "tile_plan",
       Detector::metadata, Detector::eager, kPermuted, v32_key(forget_lengths)},
      buffers("v32_tail_not_cleared", "ids of a larger step stay behind a smaller one",
              Detector::reference, v32_buffers<UnknownExtents>()),
      buffers("v32_extent_not_updated", "a path does not say how far it reached",
              Detector::reference, v32_buffers<ExtentsLostWithPadding>()),
      buffers("v32_buffers_not_zeroed", "request ids were torch.empty", Detector::reference,
              v32_buffers<BuffersNotInitialised>()),
      buffers("v32_indptr_of_live_rows", "rows of padding own what an earlier step's did",
              Detector::inputs, v32_buffers<IndptrOfLiveRows>()),
  };
}

std::vector<DecodeFault> graph_faults() {
  return {
      {"replay_does_nothing", "hazards 37: the graph never ran", "replay", Detector::ran,
       Detector::path, kSteady, with_dead_device},
      {"warm_up_state_captured", "vLLM #42444: the planner is not part of the graph",
       "sparse_mla_decode", Detector::path, Detector::inputs, kSteady,
       capture<WarmUpStateCaptured>()},
      {"planner_hoisted", "vLLM #36611: the planner runs once, in front of the graph",
       "sparse_mla_decode", Detector::path, Detector::inputs, kSteady, capture<PlannerHoisted>()},
      {"captured_state_freed", "vLLM #42444: the warm-up's state is kept, the captured one freed",
       "sparse_mla_decode", Detector::address, Detector::path, kSteady, capture<FreshStateFreed>()},
      {"break_returns_fresh_tensor",
       "vLLM #43746: an eager break's result is nothing a graph reads", "sparse_mla_decode",
       Detector::eager, Detector::reference, kSteady, breaks<FreshResult>()},
      {"break_arguments_held_weakly", "vLLM #43746: two buckets, the earlier one replayed",
       "sparse_mla_decode", Detector::eager, Detector::reference, kSteady,
       breaks<ArgumentsHeldWeakly>()},
      {"drafter_without_graphs", "vLLM #43746: the drafter is left out of the graph runner",
       "drafter", Detector::path, Detector::eager, kSteady, modes<DrafterLeftOut>()},
      {"automatic_mode_wins", "vLLM #43746: the automatic choice overrides an explicit one", "mode",
       Detector::path, Detector::eager, kSteady, modes<AutomaticWins>()},
  };
}

std::vector<DecodeFault> host_faults() {
  return {
      {"host_sync_in_capture", "vLLM #42604: .item() inside a capture", "capture", Detector::error,
       Detector::cost, kSteady, shapes<RowsFromTheDevice>(GraphMode::full)},
      {"host_sync_at_every_step", "vLLM #42604: .item() at every build", "host", Detector::cost,
       Detector::eager, kSteady, shapes<RowsFromTheDevice>(GraphMode::none)},
      {"slices_follow_the_data", "vLLM #42604: slices by nnz, every step is captured anew",
       "capture", Detector::cost, Detector::eager, kSteady,
       shapes<SlicesOfTheData>(GraphMode::full)},
      {"inputs_rewritten_in_flight", "vLLM #42604: the next step's inputs overtake a replay",
       "inputs", Detector::inputs, Detector::path, kThereAndBack, own_transfers()},
      {"top_k_not_reset", "hazards 18: rows that nobody ranks keep an earlier top-k", "fill_rows",
       Detector::candidates, Detector::reference, kPrompts, top_k<TopKKept>()},
      {"top_k_reset_to_zero", "vLLM #42810: padding with 0 instead of -1", "fill_rows",
       Detector::candidates, Detector::reference, kPrompts, top_k<TopKZeroed>()},
      {"top_k_cut_at_decode_tokens", "vLLM #42810: a buffer cut at num_decode_tokens",
       "top_k_per_row_decode", Detector::candidates, Detector::reference, kUneven,
       top_k<TopKCutAtDecodeTokens>()},
  };
}

std::vector<DecodeFault> metadata_faults() {
  return {
      {"ragged_metadata_not_persistent", "vLLM #42604: a graph reads another step's addresses",
       "sparse_mla_decode", Detector::eager, Detector::path, kSteady,
       metadata<TemporariesHandedOut>()},
      {"ragged_indices_not_copied", "vLLM #42604: the graph's buffer keeps old indices",
       "copy_ragged_to_graph_buffers", Detector::candidates, Detector::reference, kLonger,
       metadata<IndicesNotCopied>(), ends_before<IndicesNotCopied>},
      {"ragged_indptr_not_copied", "vLLM #42604: indices are copied, indptr is stale",
       "copy_ragged_to_graph_buffers", Detector::candidates, Detector::reference, kGrowing,
       metadata<IndptrNotCopied>(), ends_before<IndptrNotCopied>},
      {"block_table_of_live_rows_only", "hazards 8: rows behind the live ones keep old blocks",
       "inputs", Detector::inputs, Detector::reference, kShrink, inputs<LiveRowsSent>()},
      {"padding_writes_slot_0", "hazards 3: padding rows write into the cache", "inputs",
       Detector::inputs, Detector::reference, kShrink, inputs<PaddingWritesSlot0>()},
  };
}

std::vector<DecodeFault> kernel_faults() {
  const auto kernel = [](std::string name, std::string stands_for, std::string op) {
    return DecodeFault{
        name,    std::move(stands_for), std::move(op), Detector::reference, Detector::eager,
        kRandom, mutant(name)};
  };
  return {
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

std::vector<DecodeFault> make_faults() {
  std::vector<DecodeFault> all;
  for (const auto& make : {v32_faults, graph_faults, host_faults, metadata_faults, kernel_faults}) {
    const std::vector<DecodeFault> some = make();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace

const std::vector<DecodeFault>& all_decode_faults() {
  static const std::vector<DecodeFault> faults = make_faults();
  return faults;
}

}  // namespace plumb::cases
