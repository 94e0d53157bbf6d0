// SPDX-License-Identifier: Apache-2.0
//
// The verdict on a selection by computed scores (reference/router/scored_choices.h). A choice may
// differ from the exact one only where scores lie within each other's error, and only as often as
// honest arithmetic makes it so.
#pragma once

#include "cases/judge/judge.h"
#include "reference/router/scored_choices.h"

namespace plumb::cases {

// ids int32 [rows, k]. Fails unless in every row
//   the ids are candidates, each at most once (where any expert is right, no more is judged),
//   they are of groups that can all be among the best,
//   none stands in front of one, or instead of one, whose score is certainly larger, or certainly
//   equal with a smaller id,
// and over all rows, unless the scores are structured, no more choices differ from the exact one
// than the distances of the scores, in standard deviations of their errors, can explain. All rows
// are compared.
TensorReport judge_choices(const HostTensor& ids, const reference::ScoredChoices& choices);

}  // namespace plumb::cases
