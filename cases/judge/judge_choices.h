// SPDX-License-Identifier: Apache-2.0
//
// The verdict on a selection by computed scores (reference/router/scored_choices.h). A choice may
// differ from the exact one only if the two scores are closer than their errors, and only as often
// as these errors explain.
#pragma once

#include "cases/judge/judge.h"
#include "reference/router/scored_choices.h"

namespace plumb::cases {

// Judges ids, int32 [rows, k]. Passes only if in every row
//   the ids are candidates, each at most once (if any expert is right, nothing else is checked),
//   their groups can all be among the best groups,
//   no id stands in front of, or in place of, an id whose score is certainly larger, or certainly
//   equal with a smaller id,
// and the number of choices that differ from the exact one, over all rows, is explained by the
// distances of the scores in standard deviations of their errors (not checked for structured
// scores). All rows are compared.
TensorReport judge_choices(const HostTensor& ids, const reference::ScoredChoices& choices);

}  // namespace plumb::cases
