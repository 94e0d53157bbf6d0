// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/step_values.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <stdexcept>
#include <vector>

#include "decode/checks/requests/model_entries.h"

namespace plumb::cases {

namespace {

using device::decode::Cache;
using device::decode::CacheView;
using device::decode::Geometry;
using device::decode::StepPart;
using device::decode::StepPlan;
using Parts = device::decode::StepSegments::Parts;

// Recorded calls of a part of the step; nullptr if the part has not run.
const CallRecorder::Calls* calls_of(const WatchedEngine& twin, const StepPart& part) {
  try {
    return &twin.recorder->enqueued(part);
  } catch (const std::out_of_range&) {
    return nullptr;
  }
}

// A part of each entry of a block: bytes [begin + i * bytes, begin + (i + 1) * bytes) of entry i.
struct EntryBytes {
  std::int64_t begin = 0, bytes = 0;
};

std::vector<EntryBytes> entry_bytes(const CacheView& cache, const Geometry& geometry) {
  constexpr std::int64_t kData = 576, kScales = 8;  // of an entry of V4   [1.1]
  const std::int64_t page = cache.page, codes = geometry.index_dim;
  if (cache.block_bytes == page * (codes + device::decode::kIndexScaleBytes)) {
    return {{0, codes}, {page * codes, device::decode::kIndexScaleBytes}};
  }
  const bool is_partial = cache.cache != Cache::window && geometry.frees(cache.cache);
  if (is_partial || geometry.architecture == device::decode::Architecture::v32) {
    return {{0, cache.block_bytes / page}};
  }
  return {{0, kData}, {page * kData, kScales}};
}

// Slots of a cache whose contents are data of no request of the step: behind the end of a request
// in its last block, and in a cache of partial states all others but those of block 0.
std::vector<std::int64_t> unowned_slots(const CacheView& cache, const Geometry& geometry,
                                        const StepPlan& plan) {
  const auto which = static_cast<std::size_t>(cache.cache);
  const bool is_partial = cache.cache != Cache::window && geometry.frees(cache.cache);
  std::set<std::int64_t> blocks, owned;
  const std::int64_t width = geometry.blocks_per_request(cache.cache);
  for (std::int64_t row = 0; row < plan.live_requests; ++row) {
    const std::int64_t end = plan.seq_lens[static_cast<std::size_t>(row)] / tokens_of_entry(which);
    for (std::int64_t i = 0; i < width; ++i) {
      const std::int64_t block =
          plan.block_tables[which][static_cast<std::size_t>(row * width + i)];
      if (block == 0) continue;
      blocks.insert(block);
      for (std::int64_t entry = i * cache.page; entry < std::min(end, (i + 1) * cache.page);
           ++entry) {
        owned.insert(block * cache.page + entry % cache.page);
      }
    }
  }
  std::vector<std::int64_t> unowned;
  for (std::int64_t slot = cache.page; slot < geometry.blocks(cache.cache) * cache.page; ++slot) {
    const bool may_be = is_partial || blocks.contains(slot / cache.page);
    if (may_be && !owned.contains(slot)) unowned.push_back(slot);
  }
  return unowned;
}

// Zeroes entries that belong to no request of the step. A watched engine copies blocks of a new
// request from another engine, and a run without a watch computes them: these entries hold data of
// an earlier owner, which may differ.
void clear_unowned(const WatchedEngine& twin, const void* address, HostTensor& values) {
  const Geometry& geometry = twin.engine.geometry();
  for (const CacheView& cache : twin.engine.caches()) {
    if (cache.data != address) continue;
    const std::vector<EntryBytes> parts = entry_bytes(cache, geometry);
    for (const std::int64_t slot : unowned_slots(cache, geometry, twin.engine.plan())) {
      for (const EntryBytes& part : parts) {
        const std::int64_t at =
            slot / cache.page * cache.block_bytes + part.begin + slot % cache.page * part.bytes;
        if (at + part.bytes > std::ssize(values.bytes())) continue;
        std::memset(values.bytes().data() + at, 0, static_cast<std::size_t>(part.bytes));
      }
    }
    return;
  }
}

CallValues values_of(const WatchedEngine& twin, const CallRecorder::CallRecording& recording,
                     const StepPart& part) {
  CallValues values{recording.op, part.name + ": " + recording.place.name, {}};
  for (const CallRecorder::TensorCopy& copy : recording.copies) {
    if (copy.to == nullptr) continue;
    values.tensors.push_back(recording.tensors.at(copy.tensor));
    clear_unowned(twin, copy.from, values.tensors.back());
  }
  return values;
}

}  // namespace

StepValues values_of(const WatchedEngine& twin, const Parts& parts) {
  StepValues values;
  for (const StepPart& part : parts) {
    if (calls_of(twin, part) == nullptr) continue;
    for (const auto& recording : twin.recorder->fetch(part))
      values.push_back(values_of(twin, *recording, part));
  }
  return values;
}

std::int64_t bytes_of(const WatchedEngine& twin, const Parts& parts) {
  std::size_t bytes = 0;
  for (const StepPart& part : parts) {
    const CallRecorder::Calls* calls = calls_of(twin, part);
    if (calls == nullptr) continue;
    for (const auto& recording : *calls) {
      for (const CallRecorder::TensorCopy& copy : recording->copies)
        bytes += copy.to != nullptr ? copy.bytes : 0;
    }
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace plumb::cases
