// SPDX-License-Identifier: Apache-2.0
//
// Choices in the layers, and in the scratch memory of their ops. Defaults are right; faults
// override them.
#pragma once

#include <plumb/ops/types.h>

#include <cstddef>

#include "decode/engine/geometry.h"
#include "device/caching_allocator.h"

namespace plumb::device::decode {

class LayerPolicy {
 public:
  virtual ~LayerPolicy() = default;
  // Whether the layer repeats the norm before the feed-forward. The mix has applied it already, and
  // a second one changes nothing where the weights are 1   [7.7, vLLM #42810].
  virtual bool repeats_ffn_norm() const { return false; }
  // Whether the layer rotates the attention's output back. Values carry the rotation of their keys
  // [hazards J4].
  virtual bool turns_back() const { return true; }
  // Kind of layer whose plan the attention of `kind` uses. Each kind has its own candidates, and
  // its first call plans for these   [1.7].
  virtual Attention plan_of(Attention kind) const { return kind; }
  // Whether the attention of C4A layers is planned before its lists of candidates are written, from
  // the lengths of an earlier step. Right is: after them.
  virtual bool plans_before_lists() const { return false; }
  // Row of a prefill chunk's first token in the lists of C128A states, which hold the tokens of all
  // prompts. `prompts`: requests of earlier chunks.
  virtual std::int64_t first_c128a_list(std::int64_t token, std::int64_t /*prompts*/) const {
    return token;
  }
  // Whether the attention of prompts gathers compressed states in layers of this kind. Without that
  // it reads what the layer before has left in the workspace.
  virtual bool gathers_states(Attention /*kind*/) const { return true; }
  // Layer whose sinks the attention of prompts has in this layer.
  virtual std::size_t sinks_of_prompts(std::size_t layer) const { return layer; }
  // Whether index keys have the norm of their own compressor, instead of the states' one.
  virtual bool has_index_norm() const { return true; }
  // Whether the drafter normalises embeddings and streams with each other's weights.
  virtual bool swaps_draft_norms() const { return false; }
  // Format of the logits: what V3.2's router projection rounds to and the router reads   [8.1, vLLM
  // #42982].
  virtual plumb_format router_logits() const { return PLUMB_F32; }
};

// Scratch buffers of an op, kept from call to call.
class ScratchPolicy {
 public:
  virtual ~ScratchPolicy() = default;
  // Scratch for a call. A fault returns temporary memory and frees it after the call; a captured
  // graph would go on using that memory after it belongs to someone else   [hazards C1].
  virtual void* take(void* kept, std::size_t /*bytes*/, CachingAllocator& /*memory*/) const {
    return kept;
  }
  virtual void give_back(void* /*scratch*/, CachingAllocator& /*memory*/) const {}
};

}  // namespace plumb::device::decode
