// SPDX-License-Identifier: Apache-2.0
#include "trace/against_messages.h"
#include "trace/call_place_fields.h"

namespace plumb::cases {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RowPair, a, b)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorDifference, tensor, elements, elements_differ, rows,
                                   rows_differ, first, of_bound, largest)

}  // namespace plumb::cases

namespace plumb::trace {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CallOutline, place, inputs, read, outputs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepOutline, path, rank, step, provenance, calls)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RowDigests, inputs, outputs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PairReport, not_judged, tensors, a_wrong, b_wrong, differ,
                                   beyond)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OutlineRequest, path)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OutlineAnswer, refused, outline)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RowsRequest, path, calls)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RowsAnswer, refused, rows)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PairRequest, path_a, path_b, a, b, pairs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PairAnswer, refused, report)

}  // namespace plumb::trace

PLUMB_MESSAGE(plumb::trace::OutlineRequest)
PLUMB_MESSAGE(plumb::trace::OutlineAnswer)
PLUMB_MESSAGE(plumb::trace::RowsRequest)
PLUMB_MESSAGE(plumb::trace::RowsAnswer)
PLUMB_MESSAGE(plumb::trace::PairRequest)
PLUMB_MESSAGE(plumb::trace::PairAnswer)
