// SPDX-License-Identifier: Apache-2.0
//
// Lists the fields of result structs for the messages of workers and the journal of a bisection,
// each struct once. Senders and receivers include only tools/result_codec.h.
#pragma once

#include <string>
#include <string_view>

#include "decode/watch/replay_diff.h"
#include "diagnosis/step_diagnosis.h"
#include "process/codec_fields.h"
#include "tools/report.h"
#include "tools/result_codec.h"

namespace plumb::cases {

inline std::string_view name_of(ReplayDifference::From from) {
  switch (from) {
    case ReplayDifference::From::the_op: return "the_op";
    case ReplayDifference::From::an_op_that_may: return "an_op_that_may";
    case ReplayDifference::From::its_inputs: return "its_inputs";
    case ReplayDifference::From::its_memory: return "its_memory";
    case ReplayDifference::From::nothing: return "nothing";
  }
  return "?";
}

PLUMB_ENUM_BY_NAME(Outcome, 5)
PLUMB_ENUM_BY_NAME(Detector, kDetectors)
PLUMB_ENUM_BY_NAME(ReplayDifference::From, 5)

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Mismatch, row, column, coordinates, expected, got, bound, ratio)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Sample, rows, judged, repeated)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorReport, tensor, rows_compared, elements_compared,
                                   rows_total, wrong_elements, wrong_rows, worst, margin,
                                   observability, zero_share, flips, flip, failures, pattern,
                                   sample)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Failure, context, lines, reports, kind)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finding, detector, step, position, op, call, text)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorSummary, tensor, elements_compared, margin, observability,
                                   most_observable, zero_share, flips, flip, sample)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Phases, fill, reference, device, judge)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Alternative, contract, numerics)
// Without `evidence` and `known_verdicts`, which only the process that ran the case uses.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CaseResult, id, platform, outcome, reason, lacked_memory,
                                   failures, tensors, points, launches, comparisons, phases,
                                   diagnosis, right_under, passes_under, failed_at)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Match, wrong, explained, invented, by_chance)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Explanation, name, stands_for, match)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Diagnosis, named, next, known, left_out, not_tried, pattern,
                                   accident)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WatchResult, findings, steps, calls_judged, features, choices,
                                   flips)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DiagnosedWatch, result, diagnosis, skipped)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReplayDifference, from, step, part, call, op, tensor, rows,
                                   rows_total, input, digests)

}  // namespace plumb::cases

namespace plumb::golden {

PLUMB_ENUM_BY_NAME(Agreement, 6)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorStatistics, non_finite, mean, norm, least, greatest,
                                   least_at, greatest_at)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MovedElement, row, column, was, is, ulp)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorDrift, tensor, rows, rows_moved, elements, elements_moved,
                                   ulp, of_bound, where, histogram, other, moved_rows, largest, was,
                                   is, difference, estimated, columns, rejected, of_calls)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GoldenComparison, agreement, toolchain, drifts, lines)

}  // namespace plumb::golden

namespace plumb::tools {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorPicture, tensor, dtype, format, scales, shape, exact, rows,
                                   columns, live_rows, group_rows, cells, counts, right, infinite,
                                   unpromised, worst, wrong_values, right_values)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finished, result, findings, features, golden, op, row, scenario,
                                   contrast, trivial, reproduce, notes, pictures, dump,
                                   dump_trouble, seconds)

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CaseRequest, diagnosed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CaseAnswer, finished, unusable)

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WatchRequest, diagnosed)

}  // namespace plumb::tools
