// SPDX-License-Identifier: Apache-2.0
//
// vLLM #42982: the metadata builder of V3.2 on ROCm. A plan is kept as long as its key is the same,
// and a step rewrites only the parts of persistent buffers that it needs.
#include "faults/decode/decode_fault_lists.h"
#include "faults/decode/injections.h"
#include "faults/decode/v32_policies.h"

namespace plumb::cases {

namespace {

using device::decode::GraphMode;
using device::decode::Policies;
using device::decode::V32Policies;

Inject key(std::shared_ptr<const device::decode::PlanKeyPolicy> key) {
  V32Policies policies;
  policies.plan_key = std::move(key);
  return of_v32(policies);
}

template <class Policy>
Inject buffers() {
  V32Policies policies;
  policies.buffers = std::make_shared<Policy>();
  return of_v32(policies);
}

DecodeFault plan_fault(std::string name, std::string stands_for, ScheduleShape schedule,
                       Inject inject) {
  return {std::move(name),    std::move(stands_for), "get_decoding_sched_meta",
          Detector::metadata, Detector::eager,       schedule,
          std::move(inject)};
}

// A fault that shows in steps whose requests end at the same lengths.
DecodeFault uneven_fault(std::string name, std::string stands_for,
                         const ForgettingKey::Forget& forget) {
  return plan_fault(std::move(name), "vLLM #42982: " + std::move(stands_for), kSameEnds,
                    both(key(std::make_shared<ForgettingKey>(forget)), with_uneven_decodes()));
}

DecodeFault buffer_fault(std::string name, std::string stands_for, Detector blind, Inject inject) {
  return {std::move(name),
          "vLLM #42982: " + std::move(stands_for),
          "v32_paged_metadata",
          Detector::metadata,
          blind,
          kThereAndBack,
          std::move(inject)};
}

}  // namespace

std::vector<DecodeFault> faults_of_42982() {
  return {
      plan_fault("v32_key_without_lengths", "vLLM #42982: a plan of other lengths is kept",
                 kPermuted, key(std::make_shared<ForgettingKey>(forget_lengths))),
      uneven_fault("v32_key_without_query_lens", "equal totals with other query lengths collide",
                   forget_query_lens),
      uneven_fault("v32_key_without_longest", "equal totals with another longest query collide",
                   forget_longest),
      uneven_fault("v32_key_without_tokens", "other numbers of tokens collide", forget_tokens),
      {"v32_key_frozen", "hazards 13: the key of the first step is kept", "get_decoding_sched_meta",
       Detector::metadata, Detector::path, kRandom, key(std::make_shared<FrozenKey>())},
      plan_fault("v32_builders_share_plan", "vLLM #42982: a second builder writes the plan",
                 kLongThereAndBack, key(std::make_shared<BuilderOfEachSize>())),
      {"v32_plan_never_kept", "vLLM #42982: a cache that never hits", "get_decoding_sched_meta",
       Detector::cost, Detector::metadata, kLonger, key(std::make_shared<NeverTheSameKey>())},
      buffer_fault("v32_tail_not_cleared", "ids of a larger step stay behind a smaller one",
                   Detector::reference, buffers<UnknownExtents>()),
      buffer_fault("v32_extent_not_updated", "a path does not say how far it reached",
                   Detector::reference, buffers<ExtentsLostWithPadding>()),
      buffer_fault("v32_buffers_not_zeroed", "request ids were torch.empty", Detector::reference,
                   buffers<BuffersNotInitialised>()),
      buffer_fault("v32_indptr_of_live_rows", "rows of padding own what an earlier step's did",
                   Detector::inputs, buffers<IndptrOfLiveRows>()),
  };
}

}  // namespace plumb::cases
