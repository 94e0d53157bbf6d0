// SPDX-License-Identifier: Apache-2.0
//
// fp4_paged_mqa_logits (operations' specification, 5.8): fp8_paged_mqa_logits with queries and keys
// in MXFP4, E2M1 codes with a UE8M0 scale for each 32 dims.
#pragma once

#include "reference/indexer/paged_logits_rows.h"

namespace plumb::reference {

struct Fp4PagedMqaLogits : PagedLogitsRows {
  const std::uint8_t* q = nullptr;         // [requests, next_n, heads, dim / 2], even dim low
  const std::uint8_t* q_scales = nullptr;  // [requests * next_n, heads, dim / 32]
  std::int64_t page = 1;                   // tokens of a block: all codes, then all scales
};

// Where the codes and the scales of a token begin in its block, in bytes.
struct Fp4Entry {
  std::int64_t codes = 0, scales = 0;
};
Fp4Entry fp4_entry(std::int64_t page, std::int64_t dim, std::int64_t token);

// Returns fp32 [requests * next_n, columns]; elements that the op does not specify are 0.
Estimate fp4_paged_mqa_logits(const Fp4PagedMqaLogits& inputs, const Numerics& numerics);

}  // namespace plumb::reference
