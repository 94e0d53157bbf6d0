// SPDX-License-Identifier: Apache-2.0
#include "decode/metadata/compressed_slots.h"

#include <plumb/ops/compressor.h>

#include <algorithm>
#include <string>

namespace plumb::device::decode {

namespace {

const char* name_of_slots(Cache cache) { return cache == Cache::c4a ? "c4a slots" : "c128a slots"; }

}  // namespace

CompressedSlots::CompressedSlots(const Geometry& geometry, const CompressorPolicy& policy,
                                 EngineMemory& memory)
    : geometry_(geometry), policy_(policy) {
  for (const Cache cache : kCompressed) {
    const Attention kind = cache == Cache::c4a ? Attention::c4a : Attention::c128a;
    if (std::ranges::find(geometry.layers, kind) == geometry.layers.end()) continue;
    slots_[static_cast<int>(cache)] = memory.allocate<std::int64_t>(
        geometry.max_tokens(), std::string("compressed ") + name_of_slots(cache));
  }
}

void CompressedSlots::build(const Caller& call, const StepInputs& inputs, std::int64_t tokens,
                            std::int64_t requests) const {
  for (const Cache cache : kCompressed) {
    const int which = static_cast<int>(cache);
    if (slots_[which] == nullptr) continue;
    call("compressed_slot_mapping", name_of_slots(cache),
         plumb_compressed_slot_mapping_params{
             .query_start_loc = inputs.query_start_loc,
             .seq_lens = inputs.seq_lens,
             .slot_mapping = inputs.slot_mapping[static_cast<int>(Cache::window)],
             .block_table = inputs.block_tables[which],
             .compressed_slots = slots_[which],
             .tokens = tokens,
             .requests = requests,
             .buffer_tokens = policy_.written_slots(tokens, geometry_.max_tokens()),
             .ratio = cache == Cache::c4a ? kC4a : kC128a,
             .page = geometry_.pages[which],
             .block_table_row_stride = geometry_.blocks_per_request(cache),
             .stream = nullptr,
             .own_slot = PLUMB_OWN_SLOT_REQUIRED});
  }
}

}  // namespace plumb::device::decode
