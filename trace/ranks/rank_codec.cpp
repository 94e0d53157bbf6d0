// SPDX-License-Identifier: Apache-2.0
#include "trace/call_place_fields.h"
#include "trace/ranks/rank_messages.h"

namespace plumb::trace {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankFinding, call, collective, other, tensor, elements,
                                   of_elements, first)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankReport, step, checked, wrong, found, not_compared)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankRequest, paths)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankAnswer, refused, report)

}  // namespace plumb::trace

PLUMB_MESSAGE(plumb::trace::RankRequest)
PLUMB_MESSAGE(plumb::trace::RankAnswer)
