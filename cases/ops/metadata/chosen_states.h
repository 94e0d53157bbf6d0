// SPDX-License-Identifier: Apache-2.0
//
// Lists of the compressed states that an indexer chose for the tokens of a prefill chunk.
#pragma once

#include <cstdint>

#include "cases/tensors/step.h"

namespace plumb::cases {

// Fills the top-k list of a token that has `states` compressed states. The table has `width`
// columns. Entries from min(states, top_k) on have no meaning. Adversarial lists have holes: -1,
// and with any_negative other negative numbers too.
void fill_chosen_states(const Step& step, std::int64_t token, std::int64_t states,
                        std::int64_t top_k, std::int64_t width, std::int32_t* to,
                        bool any_negative = false);

}  // namespace plumb::cases
