// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plumb::device::decode {

// Inputs on their way to the device   [10.4].
class InputsPolicy {
 public:
  virtual ~InputsPolicy() = default;
  // A staging area is written again only after its copies are over. False: at once.
  virtual bool waits_for_copies() const { return true; }
  // Rows of the block tables that are sent: padding too. Fewer: the rows behind keep what an
  // earlier, larger batch left there   [hazards A11].
  virtual std::int64_t rows_sent(std::int64_t /*live*/, std::int64_t padded) const {
    return padded;
  }
  // The drafter has positions of its own, which are sent with every step. `sent`: so many times
  // before. Left out, an earlier step's decide which embedding is masked   [vLLM #43746].
  virtual bool sends_draft_positions(std::int64_t /*sent*/) const { return true; }
  // Of padding tokens and requests. Slot 0 would be written; a length would be attended.
  virtual std::int64_t padding_slot() const { return -1; }
  virtual std::int32_t padding_length() const { return 0; }
  virtual std::int32_t padding_states() const { return 0; }
};

}  // namespace plumb::device::decode
