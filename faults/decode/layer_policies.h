// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a layer, its inputs and its memory, each as a policy in place of the right
// one.
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
struct RouterLogitsInBf16 final : device::decode::LayerPolicy {
  plumb_format router_logits() const override { return PLUMB_BF16; }
};

class ScratchOfEachCall final : public device::decode::ScratchPolicy {
 public:
  // The first time with a spare, for a capture may ask the device for nothing.
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
// seq_len - next_n + i + 1 of a request without tokens, which a kernel may read as unsigned.
struct LengthBelowZero final : device::decode::InputsPolicy {
  std::int32_t padding_states() const override { return -1; }
};
struct PaddingHasALength final : device::decode::InputsPolicy {
  std::int32_t padding_length() const override { return 1; }
};
struct StagingNotWaitedFor final : device::decode::InputsPolicy {
  bool waits_for_copies() const override { return false; }
};
// So that what is left there is an earlier step's: captures and requests that come are sends too.
struct DraftPositionsKept final : device::decode::InputsPolicy {
  bool sends_draft_positions(std::int64_t sent) const override { return sent < 12; }
};

}  // namespace plumb::cases
