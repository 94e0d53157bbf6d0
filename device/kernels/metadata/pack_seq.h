// SPDX-License-Identifier: Apache-2.0
//
// Shared by pack_seq and unpack_seq: where a sequence starts among the packed tokens, and which
// parameters are legal.
#pragma once

#include "device/kernels/metadata/ragged.h"

namespace plumb::device::PLUMB_KERNEL_SET {

// Number of tokens in front of `sequence`. Each wave adds up the lengths by itself.
PLUMB_DEVICE inline std::int64_t first_token(const std::int32_t* lengths, std::int64_t sequence) {
  std::int32_t sum = 0;
  for (std::int64_t i = lane_index(); i < sequence; i += wave_size()) sum += lengths[i];
  return wave_sum(sum);
}

template <class Params>
bool is_legal_packing(const Params& p, std::int64_t row_stride) {
  if (p.tokens < 0 || p.sequences < 0 || p.max_length < 0 || p.columns < 1) return false;
  if (row_stride < p.columns && p.tokens > 1) return false;
  if (p.element_bytes != 1 && p.element_bytes != 2 && p.element_bytes != 4) return false;
  if (p.sequences == 0 || p.max_length == 0) return true;
  return p.lengths && p.out && (p.x || p.tokens == 0);
}

}  // namespace plumb::device::PLUMB_KERNEL_SET
