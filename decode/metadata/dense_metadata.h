// SPDX-License-Identifier: Apache-2.0
//
// Metadata of V4's attention, built by the host before each step: for each decode token the slots
// of its window and of its C128A states   [2.6, 2.7], in rows of equal width with a length per row,
// as FlashMLA takes them   [1.3]. The tables have fixed addresses and are rewritten in place,
// because captured graphs read them.
#pragma once

#include <plumb/ops/sparse_mla.h>

#include <cstdint>

#include "decode/engine/calls.h"
#include "decode/engine/geometry.h"
#include "decode/engine/memory.h"
#include "decode/engine/step_inputs.h"

namespace plumb::device::decode {

// Rows of `width` slots; the first lengths[row] slots of a row are valid.
plumb_mla_candidates dense_candidates(const std::int32_t* indices, const std::int32_t* lengths,
                                      std::int64_t width);

class DenseMetadata {
 public:
  DenseMetadata(const Geometry& geometry, EngineMemory& memory);
  virtual ~DenseMetadata() = default;
  DenseMetadata(const DenseMetadata&) = delete;
  DenseMetadata& operator=(const DenseMetadata&) = delete;

  // Enqueues the kernels for a step: candidate lists of decode tokens, gather_lens of all requests,
  // C128A states of prefill tokens. Never captured: the host calls it before each replay.
  virtual void build(const Caller& call, const StepInputs& inputs, const StepPlan& plan);

  // Candidate lists that the attention of the step enqueued next reads.
  virtual plumb_mla_candidates window() const;
  virtual plumb_mla_candidates c128a() const;
  const std::int32_t* token_to_req() const { return token_to_req_; }
  const std::uint8_t* is_valid_token() const { return is_valid_token_; }
  const std::int32_t* gather_lens() const { return gather_lens_; }
  const std::int32_t* c128a_prefill() const { return c128a_prefill_; }

 protected:
  void build_window(const Caller& call, const StepInputs& inputs, const StepPlan& plan);
  void build_c128a(const Caller& call, const StepInputs& inputs, const StepPlan& plan);
  bool has_c128a() const;

  const Geometry& geometry_;
  std::int32_t* window_slots_;  // [max_tokens, window]
  std::int32_t* window_lens_;
  std::int32_t* c128a_slots_;  // [max_tokens, c128a_width]
  std::int32_t* c128a_lens_;

 private:
  std::int32_t* token_to_req_;
  std::uint8_t* is_valid_token_;
  std::int32_t* gather_lens_;    // [max_requests] window tokens to gather
  std::int32_t* c128a_prefill_;  // [prefill tokens, c128a_width] positions
};

}  // namespace plumb::device::decode
