// SPDX-License-Identifier: Apache-2.0
//
// What layers are made of, and what memory their ops work in. Each default is right.
#pragma once

#include <plumb/ops/types.h>

#include <cstddef>

#include "decode/engine/geometry.h"
#include "device/caching_allocator.h"

namespace plumb::device::decode {

class LayerPolicy {
 public:
  virtual ~LayerPolicy() = default;
  // The mix in front of the feed-forward has applied its norm already. Done again by the layer, it
  // is right wherever a weight is 1   [7.7, vLLM #42810].
  virtual bool repeats_ffn_norm() const { return false; }
  // Attention leaves values rotated as their keys are, and the layer turns them back   [hazards
  // J4].
  virtual bool turns_back() const { return true; }
  // Whose plan the attention of such layers goes by. Layers of another kind have other candidates,
  // and the first of them that is called has planned for its own   [1.7].
  virtual Attention plan_of(Attention kind) const { return kind; }
  // What V3.2's router reads, and what its projection rounds to   [8.1, vLLM #42982].
  virtual plumb_format router_logits() const { return PLUMB_F32; }
};

// The buffers that an op works in, kept from call to call.
class ScratchPolicy {
 public:
  virtual ~ScratchPolicy() = default;
  // What a call gets. Memory of its own, given back behind it, is what a graph goes on using when
  // it is somebody else's   [hazards C1].
  virtual void* take(void* kept, std::size_t /*bytes*/, CachingAllocator& /*memory*/) const {
    return kept;
  }
  virtual void give_back(void* /*scratch*/, CachingAllocator& /*memory*/) const {}
};

}  // namespace plumb::device::decode
