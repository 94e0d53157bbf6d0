// SPDX-License-Identifier: Apache-2.0
//
// The verdict on candidate blocks: each row has to hold a set of the best blocks, in any order, and
// -1 in all other places. Of equal scores any may be taken.
#pragma once

#include <plumb/ops/types.h>

#include "cases/judge/expectation.h"
#include "cases/tensors/tensor.h"
#include "reference/top_k/select_candidate_blocks.h"

namespace plumb::cases {

// Expects right indices in `blocks`. The bytes that `input` points to are not read later.
Expectation expect_candidates(const HostTensor& blocks, const reference::CandidateSelection& input);

// Blocks in ascending order, for comparisons bit for bit. If the choice among equal scores is open
// too, one mark replaces each block at the threshold.
HostTensor canonical_candidates(const HostTensor& blocks,
                                const reference::CandidateSelection& input,
                                const plumb_numerics& declared);

}  // namespace plumb::cases
