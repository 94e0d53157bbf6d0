// SPDX-License-Identifier: Apache-2.0
//
// Errors of a layer, its inputs and its memory. Each is a policy in place of the right one.
#pragma once

#include <set>

#include "decode/policies/policies.h"

namespace plumb::cases {

struct FfnNormTwice final : device::decode::LayerPolicy {
  bool repeats_ffn_norm() const override { return true; }
};
struct RotationLeftOut final : device::decode::LayerPolicy {
  bool turns_back() const override { return false; }
};
struct OnePlanForAllKinds final : device::decode::LayerPolicy {
  device::decode::Attention plan_of(device::decode::Attention) const override {
    return device::decode::Attention::window;
  }
};
struct PlannedBeforeLists final : device::decode::LayerPolicy {
  bool plans_before_lists() const override { return true; }
};
struct RouterLogitsInBf16 final : device::decode::LayerPolicy {
  plumb_format router_logits() const override { return PLUMB_BF16; }
};

class ScratchOfEachCall final : public device::decode::ScratchPolicy {
 public:
  // The first call leaves a spare piece, because a capture may not allocate from the device.
  void* take(void*, std::size_t bytes, device::CachingAllocator& memory) const override {
    void* const scratch = memory.allocate(bytes, "scratch of a call");
    if (spared_.insert(&memory).second) memory.free(memory.allocate(bytes, "spare scratch"));
    return scratch;
  }
  void give_back(void* scratch, device::CachingAllocator& memory) const override {
    memory.free(scratch);
  }

 private:
  mutable std::set<const device::CachingAllocator*> spared_;
};

struct OwnOpInstead final : device::decode::MissingOpPolicy {
  const device::OpEntry* instead(std::string_view op,
                                 const device::Implementation& own) const override {
    return device::find_entry(own, op);
  }
};

struct LiveRowsSent final : device::decode::InputsPolicy {
  std::int64_t rows_sent(std::int64_t live, std::int64_t) const override { return live; }
};
struct PaddingWritesSlot0 final : device::decode::InputsPolicy {
  std::int64_t padding_slot() const override { return 0; }
};
// Number of states of a padding row: -1 in place of 0, as seq_len - next_n + i + 1 gives for a
// request without tokens. A kernel that reads it as unsigned gets a huge number.
struct LengthBelowZero final : device::decode::InputsPolicy {
  std::int32_t padding_states() const override { return -1; }
};
struct PaddingHasALength final : device::decode::InputsPolicy {
  std::int32_t padding_length() const override { return 1; }
};
// So that what is left there is an earlier step's.
struct KeyOffsetsKept final : device::decode::InputsPolicy {
  bool sends_key_offsets(std::int64_t sent) const override { return sent < 12; }
};
struct StagingNotWaitedFor final : device::decode::InputsPolicy {
  bool waits_for_copies() const override { return false; }
};
// The drafter's positions are sent 12 times and then no more, so that old positions remain.
// Captures and new requests are sends too.
struct DraftPositionsKept final : device::decode::InputsPolicy {
  bool sends_draft_positions(std::int64_t sent) const override { return sent < 12; }
};

struct SinksOfFirstLayer final : device::decode::LayerPolicy {
  std::size_t sinks_of_prompts(std::size_t) const override { return 0; }
};
struct LongStatesNotGathered final : device::decode::LayerPolicy {
  bool gathers_states(device::decode::Attention kind) const override {
    return kind != device::decode::Attention::c128a;
  }
};
struct IndexKeysNormedAsStates final : device::decode::LayerPolicy {
  bool has_index_norm() const override { return false; }
};
struct DraftNormsSwapped final : device::decode::LayerPolicy {
  bool swaps_draft_norms() const override { return true; }
};

struct C128aListsByPrompt final : device::decode::LayerPolicy {
  std::int64_t first_c128a_list(std::int64_t, std::int64_t prompts) const override {
    return prompts;
  }
};

}  // namespace plumb::cases
