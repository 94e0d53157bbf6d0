// SPDX-License-Identifier: Apache-2.0
#include "process/codec_fields.h"
#include "trace/export/extract.h"
#include "trace/export/repro.h"
#include "trace/trace_messages.h"

namespace plumb::trace {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CallReport, rank, step, index, calls, op, name, layer, stream,
                                   replay, not_judged, failures, margin, profile, rows, rows_judged,
                                   non_finite)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CallsRequest, path, begin, end, most_rows, budget)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CallsAnswer, refused, calls, rank, step, provenance, reports)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ExtractRequest, path, call)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ExtractAnswer, refused, why_not, file, row)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReproRequest, path, call)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReproAnswer, refused, why_not, text)

}  // namespace plumb::trace

PLUMB_MESSAGE(plumb::trace::CallsRequest)
PLUMB_MESSAGE(plumb::trace::CallsAnswer)
PLUMB_MESSAGE(plumb::trace::ExtractRequest)
PLUMB_MESSAGE(plumb::trace::ExtractAnswer)
PLUMB_MESSAGE(plumb::trace::ReproRequest)
PLUMB_MESSAGE(plumb::trace::ReproAnswer)
