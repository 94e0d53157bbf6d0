// SPDX-License-Identifier: Apache-2.0
#include "decode/metadata/index_schedule.h"

namespace plumb::device::decode {

namespace {

constexpr std::int64_t kEntryWords = 2;
// All query rows of a request form one atom, as in DeepGEMM's kernel for sm90 since June 2026.
constexpr std::int64_t kAtoms = 1;

std::size_t bytes_of(std::int64_t words) {
  return static_cast<std::size_t>(words) * sizeof(std::int32_t);
}

}  // namespace

IndexSchedule::IndexSchedule(const Geometry& geometry, const ModelSite& site)
    : geometry_(geometry),
      policy_(*site.policies.index),
      lengths_(policy_.planner_lengths()),
      device_(site.device),
      temporaries_(site.temporaries),
      schedule_(site.memory.allocate<std::int32_t>((geometry.plan_parts + 1) * kEntryWords,
                                                   "index schedule")) {}

void IndexSchedule::build(const Caller& call, const StepInputs& inputs, const StepPlan& plan) {
  if (plan.decode_rows() == 0) return;
  const std::int64_t requests = plan.packed ? plan.num_decodes : plan.decode_rows() / plan.next_n;
  const ScheduledLengths scored{plan.packed ? inputs.packed_state_lens : inputs.state_lens,
                                {requests, plan.next_n}};
  if (policy_.keeps(made_for_, scored.shape)) return;
  made_for_ = scored.shape;
  if (!policy_.keeps_its_address()) move();
  const PlannerSource step{.inputs = inputs,
                           .plan = plan,
                           .most = geometry_.max_tokens(),
                           .device = device_,
                           .stream = call.stream(),
                           .temporaries = temporaries_};
  call_planner(call, lengths_->choose(step, scored));
}

void IndexSchedule::call_planner(const Caller& call, const ScheduledLengths& lengths) const {
  call("paged_mqa_logits_metadata", "index schedule",
       plumb_paged_mqa_logits_metadata_params{.context_lens = lengths.lens,
                                              .schedule = moved_ != nullptr ? moved_ : schedule_,
                                              .requests = lengths.shape.requests,
                                              .slots = geometry_.plan_parts,
                                              .context_lens_row_stride = lengths.shape.next_n,
                                              .context_lens_dims = 2,
                                              .next_n = lengths.shape.next_n,
                                              .split_kv = geometry_.index_split,
                                              .atoms = kAtoms,
                                              .schedule_row_stride = kEntryWords,
                                              .stream = nullptr});
}

void IndexSchedule::hand_out(plumb_fp8_paged_mqa_logits_params& logits) const {
  logits.schedule = moved_ != nullptr ? moved_ : schedule_;
  logits.slots = geometry_.plan_parts;
  logits.schedule_row_stride = kEntryWords;
  logits.split_kv = geometry_.index_split;
  logits.atoms = kAtoms;
}

// Frees the buffer of the step before only after this step's is allocated, so that the address
// changes.
void IndexSchedule::move() {
  void* const now =
      temporaries_.allocate(bytes_of((geometry_.plan_parts + 1) * kEntryWords), "index schedule");
  if (moved_ != nullptr) temporaries_.free(moved_);
  moved_ = static_cast<std::int32_t*>(now);
}

}  // namespace plumb::device::decode
