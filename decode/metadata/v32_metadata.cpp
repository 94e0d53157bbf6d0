// SPDX-License-Identifier: Apache-2.0
#include "decode/metadata/v32_metadata.h"

#include <plumb/ops/metadata.h>

#include <numeric>
#include <utility>

namespace plumb::device::decode {

namespace {

constexpr std::size_t kExtentsBytes = 2 * sizeof(std::int32_t);

void upload(std::int32_t* to, const std::vector<std::int32_t>& from, Device& device,
            Stream stream) {
  device.copy(to, from.data(), from.size() * sizeof(std::int32_t), stream);
}

}  // namespace

V32Metadata::V32Metadata(const Geometry& g, Device& device, Stream stream, EngineMemory& memory,
                         V32Policies policies)
    : geometry_(g), device_(device), policies_(std::move(policies)) {
  const std::int64_t tokens = g.max_tokens();
  const auto words = [&](std::int64_t count, const char* label) {
    return memory.allocate<std::int32_t>(count, label);
  };
  req_id_per_token_ = words(tokens, "req_id_per_token");
  paged_kv_indptr_ = words(tokens + 1, "paged_kv_indptr");
  paged_kv_indices_ = words(tokens * g.top_k, "paged_kv_indices");
  qo_indptr_ = words(tokens + 1, "qo_indptr");
  paged_kv_last_page_len_ = words(tokens, "paged_kv_last_page_len");
  extents_ = words(2, "extents");
  spare_extents_ = words(2, "spare extents");
  spare_indptr_ = words(tokens + 1, "spare indptr");
  attention_.plan = {.struct_size = sizeof attention_.plan,
                     .tiles = words(g.plan_parts * kTileWords, "tiles"),
                     .num_splits = words(tokens + 1, "num_splits"),
                     .num_parts = g.plan_parts,
                     .block_n = kPlanGranularity,
                     .fixed_overhead = kPlanOverhead};
  device.fill(extents_, 0, kExtentsBytes, stream);
  if (policies_.buffers->initialises()) initialise(device, stream);
}

void V32Metadata::initialise(Device& device, Stream stream) {
  const auto tokens = static_cast<std::size_t>(geometry_.max_tokens());
  const std::size_t width = static_cast<std::size_t>(geometry_.top_k);
  device.fill(req_id_per_token_, 0, tokens * sizeof(std::int32_t), stream);
  device.fill(paged_kv_indptr_, 0, (tokens + 1) * sizeof(std::int32_t), stream);
  device.fill(paged_kv_indices_, 0, tokens * width * sizeof(std::int32_t), stream);
  std::vector<std::int32_t> numbers(tokens + 1);
  std::iota(numbers.begin(), numbers.end(), 0);
  upload(qo_indptr_, numbers, device, stream);
  upload(paged_kv_last_page_len_, std::vector<std::int32_t>(tokens, 1), device, stream);
}

void V32Metadata::build(const Caller& call, const StepInputs& inputs, const StepPlan& plan) {
  const bool earlier = policies_.plan_key->plans_earlier_ranges();
  if (earlier) {
    const auto words = static_cast<std::size_t>(geometry_.max_tokens() + 1);
    device_.copy(spare_indptr_, paged_kv_indptr_, words * sizeof(std::int32_t), call.stream());
  }
  build_buffers(call, inputs, plan);
  build_plan(call, plan, earlier ? spare_indptr_ : paged_kv_indptr_);
}

void V32Metadata::build_buffers(const Caller& call, const StepInputs& inputs,
                                const StepPlan& plan) {
  using Extents = PagedBufferPolicy::Extents;
  const Extents known = policies_.buffers->extents(plan);
  if (known == Extents::lost) {
    device_.copy(spare_extents_, extents_, kExtentsBytes, call.stream());
  } else if (known == Extents::unknown) {
    device_.fill(spare_extents_, 0, kExtentsBytes, call.stream());
  }
  const bool whole = policies_.buffers->ends_dead_rows(plan);
  call(
      "v32_paged_metadata", "paged metadata",
      plumb_v32_paged_metadata_params{.query_start_loc = inputs.query_start_loc,
                                      .seq_lens = inputs.seq_lens,
                                      .req_id_per_token = req_id_per_token_,
                                      .paged_kv_indptr = whole ? paged_kv_indptr_ : spare_indptr_,
                                      .paged_kv_indices = paged_kv_indices_,
                                      .extents = known == Extents::kept ? extents_ : spare_extents_,
                                      .max_tokens = geometry_.max_tokens(),
                                      .requests = plan.requests,
                                      .topk = geometry_.top_k,
                                      .stream = nullptr,
                                      .extent = PLUMB_EXTENT_ENTRIES});
  if (whole) return;
  const auto live = static_cast<std::size_t>(plan.live_tokens + 1);
  device_.copy(paged_kv_indptr_, spare_indptr_, live * sizeof(std::int32_t), call.stream());
}

// The plan is a step part of its own, because steps that keep the plan do not have it.
void V32Metadata::build_plan(const Caller& call, const StepPlan& plan, const std::int32_t* ranges) {
  made_plan_.reset();
  if (call.chooses("sparse_mla_decode", "plan=none")) return;
  PlanKeyPolicy::Key key = policies_.plan_key->key(keyed_step(geometry_, plan));
  PlanKeyPolicy::Key& made_for = keys_[policies_.plan_key->builder(plan)];
  if (attention_.kept.mark_planned() && key == made_for) {
    ++counts_.kept;
    return;
  }
  made_plan_ = StepPart{.name = "plan", .tokens = plan.attended, .kept = true};
  call.begin(*made_plan_);
  call("get_decoding_sched_meta", "attention plan",
       plumb_get_decoding_sched_meta_params{.tile_scheduler_metadata = attention_.plan.tiles,
                                            .num_splits = attention_.plan.num_splits,
                                            .requests = plan.attended,
                                            .topk = geometry_.top_k,
                                            .num_sm_parts = attention_.plan.num_parts,
                                            .block_n = attention_.plan.block_n,
                                            .fixed_overhead = attention_.plan.fixed_overhead,
                                            .stream = nullptr,
                                            .topk_indptr = ranges});
  made_for = std::move(key);
  ++counts_.made;
}

}  // namespace plumb::device::decode
