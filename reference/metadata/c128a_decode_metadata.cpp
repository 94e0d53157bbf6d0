// SPDX-License-Identifier: Apache-2.0
#include "reference/metadata/c128a_decode_metadata.h"

#include <algorithm>

namespace plumb::reference {

C128aMetadata c128a_decode_metadata(const C128aBatch& input) {
  C128aMetadata out;
  out.decode_slots.assign(static_cast<std::size_t>(input.decode_tokens * input.max_compressed), -1);
  out.prefill_indices.assign(static_cast<std::size_t>(input.prefill_tokens * input.max_compressed),
                             -1);
  for (std::int64_t token = 0; token < input.decode_tokens + input.prefill_tokens; ++token) {
    const std::int64_t states = std::min((input.positions[token] + 1) / 128, input.max_compressed);
    const bool decode = token < input.decode_tokens, valid = input.slot_mapping[token] >= 0;
    if (decode) out.decode_lens.push_back(valid ? states : 0);
    if (decode && !valid) continue;
    const std::int64_t row = (decode ? token : token - input.decode_tokens) * input.max_compressed;
    for (std::int64_t j = 0; j < states; ++j) {
      if (decode) {
        out.decode_slots[row + j] = input.block_table.slot(input.token_to_req[token], j);
      } else {
        out.prefill_indices[row + j] = j;
      }
    }
  }
  return out;
}

}  // namespace plumb::reference
