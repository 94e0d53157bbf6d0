// SPDX-License-Identifier: Apache-2.0
//
// vLLM #43746: breakable graphs of V4 and its drafter, and the drafter's fused input norm.
#include "faults/decode/decode_fault_lists.h"
#include "faults/decode/graph_policies.h"
#include "faults/decode/injections.h"
#include "faults/decode/layer_policies.h"

namespace plumb::cases {

namespace {

using device::decode::GraphMode;
using device::decode::Policies;

template <class Policy>
Inject breaks() {
  return policy<Policy>(&Policies::breaks, GraphMode::breakable);
}
template <class Policy>
Inject modes() {
  return both(with_drafter(), policy<Policy>(&Policies::mode));
}

// A fault of the drafter's input norm. The reference sees it in steps with a token at position 0.
DecodeFault norm_fault(std::string name, std::string stands_for, Inject inject) {
  return {std::move(name),
          "vLLM #43746: " + std::move(stands_for),
          "mtp_input_rms_norm",
          Detector::reference,
          Detector::eager,
          kGrowing,
          both(with_drafter(), std::move(inject))};
}

// 192 is no power of two, so that a padded block is wider than a row.
DecodeSetup with_192_columns(DecodeSetup setup) {
  setup.geometry.hidden = 192;
  return setup;
}

}  // namespace

std::vector<DecodeFault> faults_of_43746() {
  return {
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
      norm_fault("mtp_position_mask_missing", "the embedding at position 0 counts",
                 mutant("mtp_position_mask_missing")),
      norm_fault("mtp_position_mask_on_hidden", "the mask hides the hidden states too",
                 mutant("mtp_position_mask_on_hidden")),
      norm_fault("mtp_divides_by_padded_block", "the sum is divided by the padded block",
                 both(mutant("mtp_divides_by_padded_block"), with_192_columns)),
      norm_fault("mtp_slot_of_another_stream", "a slot is read from its neighbour",
                 mutant("mtp_slot_of_another_stream")),
      norm_fault("mtp_row_offset_too_narrow", "row offsets wrap, at 2^10 for 2^32",
                 mutant("mtp_row_offset_too_narrow")),
      {"mtp_mask_of_stale_positions", "vLLM #43746: the drafter's positions are an earlier step's",
       "inputs", Detector::inputs, Detector::reference, kGrowing,
       both(with_drafter(), policy<DraftPositionsKept>(&Policies::inputs))},
  };
}

}  // namespace plumb::cases
