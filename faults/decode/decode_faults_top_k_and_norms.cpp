// SPDX-License-Identifier: Apache-2.0
//
// vLLM #42810: corrections of V4 on ROCm: top-k rows, hyper-connections, a norm that ran twice,
// missing ops, weights of another place.
#include "faults/decode/changed_calls.h"
#include "faults/decode/decode_fault_lists.h"
#include "faults/decode/injections.h"
#include "faults/decode/layer_policies.h"
#include "faults/decode/top_k_policies.h"

namespace plumb::cases {

namespace {

using device::decode::GraphMode;
using device::decode::Policies;

template <class Policy>
Inject top_k() {
  return both(with_prompts(), policy<Policy>(&Policies::top_k, GraphMode::full_and_piecewise));
}

DecodeSetup without_hc_head(DecodeSetup setup) {
  setup.implementation = with_op_left_out("hc_head", setup.implementation);
  return setup;
}

std::vector<DecodeFault> top_k_faults() {
  return {
      {"top_k_reset_to_zero", "vLLM #42810: padding with 0 instead of -1", "fill_rows",
       Detector::candidates, Detector::reference, kPrompts, top_k<TopKZeroed>()},
      {"top_k_cut_at_decode_tokens", "vLLM #42810: a buffer cut at num_decode_tokens",
       "top_k_per_row_decode", Detector::candidates, Detector::reference, kUneven,
       top_k<TopKCutAtDecodeTokens>()},
      {"top_k_pads_with_zero", "vLLM #42810: padding with 0 instead of -1", "top_k_per_row_decode",
       Detector::reference, Detector::eager, kRandom, mutant("top_k_pads_with_zero")},
      {"top_k_global_columns", "vLLM #42810, hazards 19: columns of the chunk, not of the row",
       "top_k_per_row_prefill", Detector::reference, Detector::eager, kLongPrompts,
       both(with_prompts(), mutant("top_k_global_indices"))},
      {"top_k_only_right_for_2048", "vLLM #42810: only k = 2048 is supported",
       "top_k_per_row_prefill", Detector::reference, Detector::eager, kLongPrompts,
       both(with_prompts(), mutant("top_k_only_right_for_2048"))},
  };
}

// Each op is right with the weights that it is given.
std::vector<DecodeFault> weight_faults() {
  return {
      {"sinks_of_the_first_layer", "prompts attend with the first layer's sinks in all layers",
       "sparse_mla_prefill", Detector::order, Detector::eager, kLongPrompts,
       both(with_prompts(),
            policy<SinksOfFirstLayer>(&Policies::layers, GraphMode::full_and_piecewise))},
      {"index_keys_normed_as_states", "index keys have the norm of the states' compressor",
       "compress_norm_rope_insert", Detector::order, Detector::reference, kLonger,
       policy<IndexKeysNormedAsStates>(&Policies::layers)},
      {"draft_norms_swapped", "enorm and hnorm of the drafter are exchanged", "mtp_input_rms_norm",
       Detector::order, Detector::reference, kSteady,
       both(with_drafter(), policy<DraftNormsSwapped>(&Policies::layers))},
  };
}

}  // namespace

std::vector<DecodeFault> faults_of_42810() {
  std::vector<DecodeFault> all = top_k_faults();
  const std::vector<DecodeFault> weights = weight_faults();
  all.insert(all.end(), weights.begin(), weights.end());
  const std::vector<DecodeFault> more{
      {"mhc_row_sums_of_wrong_lanes", "vLLM #42810, hazards 27: rows behind 16 are overwritten",
       // The overwritten rows belong to the call itself, so no byte changes that must not. On real
       // devices waves race for these rows, and an eager call may end differently from a replay.
       "mhc_pre_broadcast", Detector::reference, Detector::state, kCrowd,
       both(both(with_requests(20), with_reverse_order()),
            mutant("mhc_broadcast_row_sum_unguarded"))},
      {"mhc_less_exact_above_1024", "vLLM #42810: accuracy lost above 1024 tokens, here above 8",
       "mhc_fused_post_pre", Detector::reference, Detector::eager, kCrowd,
       both(with_requests(20), changed_call(changed<LessExactFromManyTokens>()))},
      {"ffn_norm_twice", "vLLM #42810: the layer repeats the norm of its mix", "rms_norm",
       Detector::order, Detector::reference, kSteady, policy<FfnNormTwice>(&Policies::layers)},
      {"missing_op", "vLLM #42810: an op that is not there is an error", "hc_head", Detector::error,
       Detector::eager, kSteady, without_hc_head},
      {"missing_op_replaced", "vLLM #42810: another implementation's op runs without a word",
       "hc_head", Detector::path, Detector::reference, kSteady,
       both(without_hc_head, policy<OwnOpInstead>(&Policies::missing_ops))},
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace plumb::cases
