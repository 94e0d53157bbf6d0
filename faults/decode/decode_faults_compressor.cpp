// SPDX-License-Identifier: Apache-2.0
//
// The compressor of V4: partial states in the wrong place, at the wrong time or without their
// blocks; windows and slots of compressed states.
#include "faults/decode/compressor_policies.h"
#include "faults/decode/decode_fault_lists.h"
#include "faults/decode/injections.h"

namespace plumb::cases {

namespace {

using device::decode::GraphMode;
using device::decode::Policies;

constexpr ScheduleShape kShared{Traffic::prefix, Lengths::equal, 8, 4, 1};
constexpr ScheduleShape kRejected{Traffic::steady, Lengths::mixed, 4, 4, 1, Acceptance::some};
constexpr ScheduleShape kAcrossBorders{Traffic::steady, Lengths::across, 3, 4, 1};
// Four tokens of a request complete a state of C4A. In the second step a request is gone.
constexpr ScheduleShape kLastOneLeaves{Traffic::shrink, Lengths::around_page, 4, 4, 1};

constexpr std::string_view kSave = "save_partial_states";
constexpr std::string_view kCompress = "compress_norm_rope_insert";
constexpr std::string_view kSlots = "compressed_slot_mapping";

DecodeSetup with_three_drafts(DecodeSetup setup) {
  setup.geometry = device::decode::small_geometry(4, 3, 48);
  setup.geometry.capture_sizes = {4, 16};
  return setup;
}

template <class Policy>
DecodeFault host_fault(std::string name, std::string stands_for, std::string part,
                       const ScheduleShape& schedule, const Inject& where = nullptr) {
  const Inject inject = policy<Policy>(&Policies::requests);
  return {std::move(name), std::move(stands_for),
          std::move(part), Detector::history,
          Detector::eager,  // an eager step uses the same wrong plan
          schedule,        where ? both(inject, where) : inject};
}

std::vector<DecodeFault> partial_state_faults() {
  return {
      host_fault<PartialStatesByBatchRow>("partial_states_by_batch_row",
                                          "partial states are kept by the row in the batch",
                                          "slot_mapping", kPermuted),
      host_fault<RejectedStatesKept>("rejected_partial_states_kept",
                                     "the partial state of a rejected token is not saved again",
                                     "slot_mapping", kRejected, with_three_drafts),
      host_fault<PartialGapNotFilled>("partial_states_of_a_hit_not_filled",
                                      "a prefix hit does not restore the compressor's window",
                                      "prefix hit", kShared),
      host_fault<PartialWindowEndsABlockEarly>(
          "partial_window_ends_a_block_early",
          "a block goes back although the next state is made of it", "block release", kSteady),
      {"token_to_req_kept", "tokens keep the requests of an earlier batch", "inputs",
       Detector::inputs, Detector::reference, kManyPrompts,
       both(with_prompts(),
            policy<TokenToReqKept>(&Policies::inputs, GraphMode::full_and_piecewise))},
  };
}

std::vector<DecodeFault> call_faults() {
  return {
      {"compressed_slots_of_tokens_only", "only the rows of a step's tokens are cleared",
       std::string(kSlots), Detector::metadata, Detector::reference, kLastOneLeaves,
       both(with_three_drafts,
            policy<SlotsOfTheTokensOnly>(&Policies::compressor, GraphMode::piecewise))},
      {"compressor_gate_at_the_last_token",
       "the host skips a state that the last token of a request completes", std::string(kCompress),
       Detector::order, Detector::eager, kAcrossBorders,
       policy<GateAtTheLastToken>(&Policies::compressor, GraphMode::none)},
      {"compressed_before_saved", "a state is compressed before its last token is saved",
       std::string(kSave), Detector::order, Detector::eager, kSteady,
       policy<CompressedBeforeSaved>(&Policies::compressor)},
  };
}

DecodeFault kernel_fault(std::string name, std::string stands_for, std::string_view op,
                         const std::string& by, const ScheduleShape& schedule,
                         const Inject& where = nullptr) {
  return {std::move(name),
          std::move(stands_for),
          std::string(op),
          Detector::reference,
          Detector::eager,
          schedule,
          where ? both(where, mutant(by)) : mutant(by)};
}

std::vector<DecodeFault> kernel_faults() {
  return {
      kernel_fault("ape_added_twice", "ape is added by the writer and by the reader", kSave,
                   "partial_states_ape_twice", kRandom),
      kernel_fault("ape_of_the_batch_row", "the row of ape is that of the token in the batch",
                   kSave, "partial_states_ape_of_the_row", kRandom),
      kernel_fault("compressor_window_of_the_chunk", "a window begins with the tokens of the step",
                   kCompress, "compressed_window_of_the_chunk", kRandom),
      kernel_fault("compressor_blocks_of_the_first_request",
                   "the window of each state is that of the first request", kCompress,
                   "compressed_state_of_the_first_request", kRandom),
      kernel_fault("compressed_slots_of_the_sequence_end",
                   "the number of a state follows from the length of its request", kSlots,
                   "compressed_slots_of_the_sequence_end", kRejected, with_three_drafts),
  };
}

}  // namespace

std::vector<DecodeFault> faults_of_compressor() {
  std::vector<DecodeFault> all;
  for (const auto& make : {partial_state_faults, call_faults, kernel_faults}) {
    const std::vector<DecodeFault> some = make();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace plumb::cases
