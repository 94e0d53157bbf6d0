// SPDX-License-Identifier: Apache-2.0
//
// The candidates of all tokens of a step, as V4 on ROCm has them: dense tables made by kernels from
// the step's inputs, then ragged lists in buffers that keep their addresses   [2.3, 2.4, 2.6, 2.7].
// Once per step for the sliding window and the C128A layers; C4A layers make their own after their
// top-k.
#pragma once

#include <cstdint>

#include "device/caching_allocator.h"
#include "device/decode/calls.h"
#include "device/decode/geometry.h"
#include "device/decode/memory.h"
#include "device/decode/policies.h"
#include "device/decode/step_inputs.h"

namespace plumb::device::decode {

// Slots of row r: indices[indptr[r] .. indptr[r + 1]).
struct Ragged {
  std::int32_t* indices = nullptr;  // [max_tokens * width]
  std::int32_t* indptr = nullptr;   // [max_tokens + 1]
  std::int64_t width = 0;           // most slots of a row
};

class RaggedMetadata {
 public:
  RaggedMetadata(const Geometry& geometry, const MetadataPolicy& policy, Memory& memory,
                 CachingAllocator& temporaries);

  // Enqueues the kernels for a step: lists for what decodes, gather_lens for all requests, C128A
  // states for prefill tokens. Not captured: the host does it before each replay.
  void build(const Caller& call, const StepInputs& inputs, const StepPlan& plan);

  // What the attention of a step that is enqueued now reads.
  const Ragged& window() const { return window_.handed_out; }
  const Ragged& c128a() const { return c128a_.handed_out; }
  const std::int32_t* token_to_req() const { return token_to_req_; }
  const std::uint8_t* is_valid_token() const { return is_valid_token_; }
  const std::int32_t* gather_lens() const { return gather_lens_; }
  const std::int32_t* c128a_prefill() const { return c128a_prefill_; }

 private:
  struct Lists {
    Ragged persistent, handed_out;
    std::int64_t copies = 0;  // into the persistent ones
  };
  // A dense table to its ragged list, by way of temporaries.
  void flatten(const Caller& call, const std::string& name, const std::int32_t* dense,
               const std::int32_t* lengths, std::int64_t rows, Lists& to);
  std::int32_t* words(std::int64_t count, const std::string& label);
  void keep(const Caller& call, const std::string& name, const Ragged& built, std::int64_t rows,
            const Lists& to);

  const Geometry& geometry_;
  const MetadataPolicy& policy_;
  CachingAllocator& temporaries_;
  Lists window_, c128a_;
  std::int32_t* window_slots_;  // [max_tokens, window]
  std::int32_t* window_lens_;
  std::int32_t* token_to_req_;
  std::uint8_t* is_valid_token_;
  std::int32_t* gather_lens_;  // [max_requests]
  std::int32_t* c128a_slots_;  // [max_tokens, c128a_width]
  std::int32_t* c128a_lens_;
  std::int32_t* c128a_prefill_;  // [prefill tokens, c128a_width] positions
};

}  // namespace plumb::device::decode
