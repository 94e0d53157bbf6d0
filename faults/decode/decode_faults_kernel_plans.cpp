// SPDX-License-Identifier: Apache-2.0
//
// Plans that divide the work of a kernel: the schedule of the indexer's logits (DeepGEMM), the tile
// plan of the attention (FlashMLA). And the keys that a prefill's indexer gathers in front of its
// work.
#include "faults/decode/changed_calls.h"
#include "faults/decode/decode_fault_lists.h"
#include "faults/decode/index_policies.h"
#include "faults/decode/injections.h"
#include "faults/decode/layer_policies.h"
#include "faults/decode/request_policies.h"
#include "faults/decode/v32_policies.h"

namespace plumb::cases {

namespace {

using device::decode::GraphMode;
using device::decode::Policies;

constexpr std::string_view kSchedule = "paged_mqa_logits_metadata";
constexpr std::string_view kPlan = "get_decoding_sched_meta";
constexpr std::string_view kGather = "cp_gather_indexer_k_quant_cache";

template <class Policy>
DecodeFault schedule_fault(std::string name, std::string stands_for, const ScheduleShape& schedule,
                           const Inject& where = nullptr) {
  const Inject inject = policy<Policy>(&Policies::index);
  return {std::move(name),
          std::move(stands_for),
          std::string(kSchedule),
          Detector::metadata,
          Detector::inputs,
          schedule,
          where ? both(inject, where) : inject};
}

DecodeFault mutant_fault(std::string name, std::string stands_for, std::string_view op,
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

// A captured decode of up to four tokens where requests take as many as they like: what runs in
// pieces is packed.
DecodeSetup with_uneven_v4(DecodeSetup setup) {
  setup = with_prompts()(std::move(setup));
  setup.mode = GraphMode::full_and_piecewise;
  return setup;
}
// Long lists of states, so that rows differ in their blocks.
DecodeSetup with_long_lists(DecodeSetup setup) {
  setup.geometry.top_k = 80;
  return setup;
}
// V3.2 with prompts, in two layers.
DecodeSetup v32_with_prompts(DecodeSetup setup) {
  setup.geometry = device::decode::small_v32_geometry(4, 0, 64, 48);
  setup.mode = GraphMode::full_and_piecewise;
  return setup;
}
// More prompts in a step than a workspace takes.
DecodeSetup with_many_prompts(DecodeSetup setup) {
  setup.geometry = device::decode::small_geometry(8, 0, 48);
  setup.mode = GraphMode::full_and_piecewise;
  return setup;
}

std::vector<DecodeFault> schedule_faults() {
  return {
      schedule_fault<ScheduleKeptForAShape>("index_schedule_kept_for_shape",
                                            "a schedule is kept for lengths of an equal shape",
                                            kPermuted),
      schedule_fault<ScheduleKeptForAShape>("v32_index_schedule_kept_for_shape",
                                            "a schedule is kept for lengths of an equal shape",
                                            kPermuted, of_v32()),
      schedule_fault<ScheduleFrom<LengthsOfTheStepBefore>>(
          "index_schedule_of_last_lengths", "the planner runs in front of the new lengths",
          kPermuted),
      schedule_fault<ScheduleFrom<LengthsInTokens>>(
          "index_schedule_in_tokens", "spec 5.2: lengths that are not divided by the ratio",
          kSteady),
      schedule_fault<ScheduleFrom<LengthsNotPacked>>(
          "index_schedule_of_unpacked_rows", "the planner does not know that requests are packed",
          kUneven, with_uneven_v4),
      {"index_schedule_moves", "a schedule is a tensor of each step", "fp8_paged_mqa_logits",
       Detector::address, Detector::path, kPermuted, policy<ScheduleMoves>(&Policies::index)},
      mutant_fault("index_schedule_whole_segments_only",
                   "the last segment of a request is planned only if it is full", kSchedule,
                   "mqa_schedule_whole_segments_only", kRandom),
      mutant_fault("index_logits_end_of_slot_skipped",
                   "a slot leaves out what is in front of its end", "fp8_paged_mqa_logits",
                   "paged_mqa_logits_end_of_slot_skipped", kPermuted),
  };
}

std::vector<DecodeFault> attention_plan_faults() {
  return {
      {"attention_plan_before_lists", "the planner runs in front of the lists of the layer",
       std::string(kPlan), Detector::metadata, Detector::inputs, kPermuted,
       both(policy<PlannedBeforeLists>(&Policies::layers), with_long_lists)},
      {"attention_plan_without_extra", "the planner gets the lengths of one of two caches",
       std::string(kPlan), Detector::reference, Detector::eager, kSteady,
       changed_call(changed<PlanWithoutExtra>())},
      mutant_fault("attention_plan_last_block_dropped", "spec 5.4: plan_last_block_dropped", kPlan,
                   "sched_meta_last_block_dropped", kSteady),
      {"v32_plan_of_earlier_ranges", "the planner gets the ranges of the step before",
       std::string(kPlan), Detector::metadata, Detector::inputs, kPermuted,
       [](DecodeSetup setup) {
         device::decode::V32Policies policies;
         policies.plan_key = std::make_shared<PlanOfEarlierRanges>();
         return of_v32(policies)(std::move(setup));
       }},
  };
}

// Rows of tensors that hold all tokens of a step, in calls for a chunk of prompts.
std::vector<DecodeFault> chunk_faults() {
  const auto in_pieces = GraphMode::full_and_piecewise;
  return {
      {"index_weights_of_other_tokens",
       "head weights of prompts are counted without the requests that decode",
       "fp8_mqa_logits",
       Detector::order,
       Detector::eager,
       {Traffic::prompts, Lengths::mixed, 4, 4, 3},
       both(with_prompts(), policy<WeightsOfPrompts>(&Policies::index, in_pieces))},
      {"c128a_lists_of_other_tokens",
       "lists of a chunk are counted in prompts instead of tokens",
       "sparse_mla_prefill",
       Detector::candidates,
       Detector::eager,
       {Traffic::burst, Lengths::across, 3, 8, 1},
       both(with_many_prompts, policy<C128aListsByPrompt>(&Policies::layers, in_pieces))},
  };
}

std::vector<DecodeFault> gather_faults() {
  const auto in_pieces = GraphMode::full_and_piecewise;
  return {
      {"index_keys_offsets_one_step_old", "keys are gathered by the ranges of an earlier step",
       "inputs", Detector::inputs, Detector::reference, kManyPrompts,
       both(with_prompts(), policy<KeyOffsetsKept>(&Policies::inputs, in_pieces))},
      {"index_keys_offsets_of_the_step",
       "ranges of a chunk count the keys of the chunk before",
       "prefill plan",
       Detector::history,
       Detector::eager,
       {Traffic::burst, Lengths::equal, 6, 8, 1},
       both(with_many_prompts, policy<KeyOffsetsOfTheStep>(&Policies::requests, in_pieces))},
      {"index_keys_of_the_layer_before",
       "spec 4.5: a workspace is taken for gathered that is not",
       std::string(kGather),
       Detector::order,
       Detector::reference,
       {Traffic::prompts, Lengths::equal, 4, 4, 3},
       both(v32_with_prompts, policy<KeysGatheredOnce>(&Policies::index, in_pieces))},
      {"long_states_not_gathered",
       "states of another layer are taken for gathered",
       "sparse_mla_prefill",
       Detector::padding,
       Detector::reference,
       {Traffic::burst, Lengths::across, 3, 8, 1},
       both(with_many_prompts, policy<LongStatesNotGathered>(&Policies::layers, in_pieces))},
      {"index_keys_last_one_missing", "the grid of the gather ends one key early",
       std::string(kGather), Detector::reference, Detector::path, kLongPrompts,
       both(with_prompts(), changed_call(changed<LastKeyNotGathered>()))},
      mutant_fault("index_keys_scales_behind_each_key", "scales are taken for a part of each key",
                   kGather, "gather_keys_scales_behind_each_key", kLongPrompts, with_prompts()),
  };
}

}  // namespace

std::vector<DecodeFault> faults_of_kernel_plans() {
  std::vector<DecodeFault> all;
  for (const auto& make : {schedule_faults, attention_plan_faults, chunk_faults, gather_faults}) {
    const std::vector<DecodeFault> some = make();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace plumb::cases
