// SPDX-License-Identifier: Apache-2.0
//
// vLLM #42444: the attention's plan, which the first call with a state makes. A graph may or may
// not contain the planner.
#include "faults/decode/decode_fault_lists.h"
#include "faults/decode/graph_policies.h"
#include "faults/decode/injections.h"
#include "faults/decode/layer_policies.h"

namespace plumb::cases {

namespace {

using device::decode::GraphMode;
using device::decode::Policies;

template <class Policy>
DecodeFault capture_fault(std::string name, std::string stands_for, Detector seen_by,
                          Detector blind) {
  return {std::move(name),
          std::move(stands_for),
          "get_decoding_sched_meta",
          seen_by,
          blind,
          kSteady,
          policy<Policy>(&Policies::capture)};
}

// With top 80, long rows have more blocks of candidates than short ones.
DecodeSetup with_top_80(DecodeSetup setup) {
  setup.geometry.top_k = 80;
  return setup;
}

}  // namespace

std::vector<DecodeFault> faults_of_42444() {
  return {
      capture_fault<WarmUpStateCaptured>(
          "warm_up_state_captured", "vLLM #42444, hazards 9: the planner is not part of the graph",
          Detector::path, Detector::inputs),
      capture_fault<PlannerHoisted>("planner_hoisted",
                                    "vLLM #36611: the planner runs once, in front of the graph",
                                    Detector::path, Detector::inputs),
      {"plan_kept_between_steps", "vLLM #42982: V4's plan is that of the step before",
       "get_decoding_sched_meta", Detector::metadata, Detector::address, kPermuted,
       both(policy<StateKept>(&Policies::capture, GraphMode::piecewise), with_top_80)},
      {"one_plan_for_all_kinds", "vLLM #42982: V4's plan does not know the kind of layer",
       "get_decoding_sched_meta", Detector::metadata, Detector::eager, kSteady,
       policy<OnePlanForAllKinds>(&Policies::layers)},
      capture_fault<FreshStateFreed>(
          "captured_state_freed",
          "vLLM #42444: the warm-up's state is kept, the captured one freed", Detector::address,
          Detector::path),
  };
}

}  // namespace plumb::cases
