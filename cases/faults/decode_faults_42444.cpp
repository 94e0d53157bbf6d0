// SPDX-License-Identifier: Apache-2.0
//
// vLLM #42444: the attention's plan, made by the first call that gets a state, and what of it a
// graph contains.
#include "cases/faults/decode_fault_lists.h"
#include "cases/faults/graph_policies.h"
#include "cases/faults/injections.h"

namespace plumb::cases {

namespace {

using device::decode::GraphMode;
using device::decode::Policies;

template <class Policy>
DecodeFault capture_fault(std::string name, std::string stands_for, Detector seen_by,
                          Detector blind) {
  return {std::move(name),
          std::move(stands_for),
          "sparse_mla_decode",
          seen_by,
          blind,
          kSteady,
          policy<Policy>(&Policies::capture)};
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
      capture_fault<FreshStateFreed>(
          "captured_state_freed",
          "vLLM #42444: the warm-up's state is kept, the captured one freed", Detector::address,
          Detector::path),
  };
}

}  // namespace plumb::cases
