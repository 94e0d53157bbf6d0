// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plumb::device::decode {

// Choices of the host that sends inputs to the device   [10.4]. Defaults are right; faults override
// them.
class InputsPolicy {
 public:
  virtual ~InputsPolicy() = default;
  // Whether a staging area is rewritten only after its copies have run. False: at once.
  virtual bool waits_for_copies() const { return true; }
  // Number of block-table rows that are sent, padding included. If fewer are sent, the remaining
  // rows keep the blocks of an earlier, larger batch   [hazards A11].
  virtual std::int64_t rows_sent(std::int64_t /*live*/, std::int64_t padded) const {
    return padded;
  }
  // Whether the drafter's own positions are sent with this step. `sent`: number of steps sent
  // before. If not, positions of an earlier step decide which embedding is masked   [vLLM #43746].
  virtual bool sends_draft_positions(std::int64_t /*sent*/) const { return true; }
  // Whether a step sends the offsets that say which keys of a prefill's workspace belong to which
  // request. If not, the offsets of an earlier step decide what is gathered.
  virtual bool sends_key_offsets(std::int64_t /*sent*/) const { return true; }
  // Whether a step sends the rows of its tokens' requests. If not, those of an earlier step decide
  // whose partial states are compressed.
  virtual bool sends_token_to_req(std::int64_t /*sent*/) const { return true; }
  // Values for padding tokens and requests. Slot 0 would be written to, and a length above 0 would
  // be attended.
  virtual std::int64_t padding_slot() const { return -1; }
  virtual std::int32_t padding_length() const { return 0; }
  virtual std::int32_t padding_states() const { return 0; }
};

}  // namespace plumb::device::decode
