// SPDX-License-Identifier: Apache-2.0
//
// paged_mqa_logits_metadata: thread i writes entry i of the schedule. It counts the segments of all
// requests, then walks to the request and segment at which its slot starts. All slots have the same
// number of segments, the last ones one more. Idle slots come first, so that each entry names an
// existing request. Legal: any number of slots that fits the grid's x.
#include <plumb/ops/indexer.h>

#include "device/kernels/metadata/ragged.h"
#include "device/simt.h"

namespace plumb::device::PLUMB_KERNEL_SET {

namespace {

using Params = plumb_paged_mqa_logits_metadata_params;

constexpr int kScheduleThreads = 64;

// Number of segments of an atom of a request. It follows from the request's last query row, which
// sees the most keys.
PLUMB_DEVICE std::int64_t segments_of(const Params& p, std::int64_t request) {
  const std::int64_t last = p.context_lens_dims == 2 ? p.next_n - 1 : 0;
  const std::int64_t length = p.context_lens[request * p.context_lens_row_stride + last];
  return (length + p.split_kv - 1) / p.split_kv;
}

PLUMB_KERNEL void schedule_kernel(Params p) {
  const std::int64_t slot = std::int64_t{block_index_x()} * kScheduleThreads + thread_index();
  if (slot > p.slots) return;
  std::int64_t total = 0;
  for (std::int64_t request = 0; request < p.requests; ++request) {
    total += segments_of(p, request) * p.atoms;
  }
  const std::int64_t share = total / p.slots, rest = total % p.slots;
  const std::int64_t larger = slot - (p.slots - rest);  // slots before this one that have one more
  std::int64_t left = slot * share + (larger > 0 ? larger : 0);
  std::int64_t request = 0, segments = segments_of(p, 0);
  while (left >= segments * p.atoms && request < p.requests - 1) {
    left -= segments * p.atoms;
    segments = segments_of(p, ++request);
  }
  const bool end = slot == p.slots, empty = segments == 0;
  std::int32_t* entry = p.schedule + slot * p.schedule_row_stride;
  const std::int64_t atom = request * p.atoms + (empty ? 0 : left / segments);
  entry[0] = static_cast<std::int32_t>(end ? p.requests * p.atoms : atom);
  entry[1] = static_cast<std::int32_t>(end || empty ? 0 : left % segments);
}

plumb_status launch_schedule(const void* params) {
  if (params == nullptr) return PLUMB_INVALID_ARGUMENT;
  const auto& p = *static_cast<const Params*>(params);
  if (p.requests < 1 || p.slots < 1 || p.next_n < 1 || p.split_kv < 1 || p.atoms < 1) {
    return PLUMB_INVALID_ARGUMENT;
  }
  if (p.context_lens_dims != 1 && p.context_lens_dims != 2) return PLUMB_INVALID_ARGUMENT;
  const std::int64_t lens = p.context_lens_dims == 2 ? p.next_n : 1;
  if (p.context_lens_row_stride < lens || p.schedule_row_stride < 2) return PLUMB_INVALID_ARGUMENT;
  if (!p.context_lens || !p.schedule) return PLUMB_INVALID_ARGUMENT;
  const std::int64_t blocks = p.slots / kScheduleThreads + 1;
  if (blocks > stream_properties(p.stream).max_grid_x) return PLUMB_UNSUPPORTED;
  const LaunchShape shape{blocks, 1, kScheduleThreads, 0};
  return PLUMB_LAUNCH(schedule_kernel, shape, p.stream, p);
}

}  // namespace

OpEntry paged_mqa_logits_metadata() {
  return {"paged_mqa_logits_metadata", launch_schedule, kExactNumerics};
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
