// SPDX-License-Identifier: Apache-2.0
//
// Faults of hazards that none of the five vLLM changes stands for: rows of dead requests, stale
// state, offsets, strides, codes, and a graph that never ran.
#include "faults/dead_replay.h"
#include "faults/decode/changed_calls.h"
#include "faults/decode/decode_fault_lists.h"
#include "faults/decode/injections.h"
#include "faults/decode/layer_policies.h"
#include "faults/decode/top_k_policies.h"

namespace plumb::cases {

namespace {

using device::decode::GraphMode;
using device::decode::Policies;

DecodeSetup with_dead_device(DecodeSetup setup) {
  setup.wrap = [](std::unique_ptr<device::Device> inner) -> std::unique_ptr<device::Device> {
    return std::make_unique<DeadReplay>(std::move(inner));
  };
  return setup;
}

// With one head, ReLU makes half of the scores zero, and the zeros are best if its weight is
// negative.
DecodeSetup with_one_index_head(DecodeSetup setup) {
  setup.geometry.index_heads = 1;
  return setup;
}

template <class Policy>
Inject inputs() {
  return both(policy<Policy>(&Policies::inputs), with_late_device());
}

DecodeFault kernel_fault(std::string name, std::string stands_for, std::string op, Inject inject) {
  return {std::move(name),  "hazards " + std::move(stands_for),
          std::move(op),    Detector::reference,
          Detector::eager,  kRandom,
          std::move(inject)};
}
DecodeFault kernel_fault(const std::string& name, std::string stands_for, std::string op) {
  return kernel_fault(name, std::move(stands_for), std::move(op), mutant(name));
}

std::vector<DecodeFault> hazard_host_faults() {
  return {
      {"padding_writes_slot_0", "hazards 3: padding rows write into the cache", "inputs",
       Detector::inputs, Detector::reference, kShrink, inputs<PaddingWritesSlot0>()},
      {"padding_length_below_zero", "hazards 7: seq_len - next_n + i + 1 is not clamped", "inputs",
       Detector::inputs, Detector::eager, kShrink, inputs<LengthBelowZero>()},
      {"padding_has_a_length", "hazards A8: padding has a length of 1", "inputs", Detector::inputs,
       Detector::reference, kShrink, inputs<PaddingHasALength>()},
      {"block_table_of_live_rows_only", "hazards 8: rows behind the live ones keep old blocks",
       "inputs", Detector::inputs, Detector::reference, kShrink, inputs<LiveRowsSent>()},
      {"scratch_of_its_own", "hazards 14: an op's scratch is torch.empty at every call",
       "sparse_mla_decode", Detector::address, Detector::reference, kSteady,
       policy<ScratchOfEachCall>(&Policies::scratch)},
      {"top_k_not_reset", "hazards 18: rows that nobody ranks keep an earlier top-k", "fill_rows",
       Detector::candidates, Detector::reference, kManyPrompts,
       both(with_prompts(), policy<TopKKept>(&Policies::top_k, GraphMode::full_and_piecewise))},
      {"inverse_rope_left_out", "hazards J4: an op is missing", "inverse_rope", Detector::order,
       Detector::reference, kSteady, policy<RotationLeftOut>(&Policies::layers)},
      {"replay_does_nothing", "hazards 37: the graph never ran", "replay", Detector::ran,
       Detector::path, kSteady, with_dead_device},
  };
}

std::vector<DecodeFault> row_faults() {
  return {
      kernel_fault("mla_dead_rows_not_written", "1: rows without a token return early",
                   "sparse_mla_decode"),
      kernel_fault("router_padding_mask_ignored", "1: padding rows are routed",
                   "sqrt_softplus_topk"),
      // On a real device padding rows race for slot 0. So an eager step may differ there, and
      // `eager` is not blind.
      {"k_cache_minus_one_is_slot_0", "hazards 3: -1 lands in slot 0",
       "quantize_and_insert_k_cache", Detector::reference, Detector::path, kRandom,
       mutant("k_cache_minus_one_is_slot_0")},
      kernel_fault("mla_minus_one_read_as_slot_0", "A3: a hole attends slot 0",
                   "sparse_mla_decode"),
      kernel_fault("swa_tail_not_cleared", "18: columns behind a shorter row keep old slots",
                   "swa_decode_metadata"),
      kernel_fault("mla_sink_per_split", "K: the sink counts once per split", "sparse_mla_decode"),
      {"top_k_start_taken_for_end", "hazards 19: ks for ke", "top_k_per_row_prefill",
       Detector::reference, Detector::eager, kLongPrompts,
       both(with_prompts(), changed_call(changed<StartsTakenForEnds>()))},
      kernel_fault("top_k_candidates_dropped", "20: candidates that do not fit are dropped",
                   "top_k_per_row_decode",
                   both(mutant("top_k_candidates_dropped"), with_one_index_head)),
  };
}

std::vector<DecodeFault> layout_faults() {
  return {
      kernel_fault("k_cache_offset_too_narrow", "24: block * stride wraps, at 2^16 for 2^32",
                   "quantize_and_insert_k_cache"),
      kernel_fault("mla_block_offset_too_narrow", "24: block * stride wraps, at 2^16 for 2^32",
                   "sparse_mla_decode"),
      kernel_fault("index_scale_offset_too_narrow", "24: only the scale's offset wraps, at 2^12",
                   "indexer_k_quant_and_cache",
                   both(mutant("index_scale_offset_too_narrow"), of_v32())),
      {"mhc_post_strides_swapped", "hazards 25: the strides of tokens and streams swapped",
       "mhc_post", Detector::reference, Detector::path, kRandom,
       changed_call(changed<StridesSwapped>())},
      kernel_fault("k_cache_underflow_is_fnuz_nan", "34: what underflows below zero is 0x80",
                   "quantize_and_insert_k_cache",
                   both(mutant("k_cache_underflow_is_fnuz_nan"), with_fnuz_caches())),
      {"dialect_dropped_by_gather", "hazards 34: the prefill's wrapper drops the fnuz flag",
       "dequantize_and_gather_k_cache", Detector::reference, Detector::eager, kLongPrompts,
       both(both(with_prompts(), changed_call(changed<DialectDroppedByGather>())),
            with_fnuz_caches())},
      kernel_fault("mhc_fused_comb_transposed", "J8: the mixing matrix is transposed",
                   "mhc_fused_post_pre"),
      kernel_fault("hc_head_mean_square_over_hidden", "35: RMS over H instead of 4 H", "hc_head"),
  };
}

}  // namespace

std::vector<DecodeFault> faults_of_hazards() {
  std::vector<DecodeFault> all;
  for (const auto& make : {hazard_host_faults, row_faults, layout_faults}) {
    const std::vector<DecodeFault> some = make();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace plumb::cases
