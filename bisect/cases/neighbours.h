// SPDX-License-Identifier: Apache-2.0
//
// The cases next to the smallest one: which parameters does the failure need, and at which values?
#pragma once

#include "bisect/cases/shrink.h"
#include "bisect/search/prober.h"

namespace plumb::bisect {

// Fills in `neighbours`, `needed_plain` and `irrelevant` of a result with a smallest case. `start`:
// the case before the search.
void find_neighbours(Shrunk& shrunk, const Candidate& start, const Shrinkable& subject,
                     Prober& prober);

}  // namespace plumb::bisect
