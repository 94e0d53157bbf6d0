// SPDX-License-Identifier: Apache-2.0
//
// The codec of results: on the way from a worker process to the process that reports, and in the
// journal of a bisection. Each struct lists its fields once; process/codec.h makes bytes of it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "bisect/ops/ops_search.h"
#include "decode/watch/replay_diff.h"
#include "diagnosis/step_diagnosis.h"
#include "process/codec.h"
#include "tools/report.h"

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
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Failure, context, lines, reports)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finding, detector, step, position, op, call, text)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorSummary, tensor, elements_compared, margin, observability,
                                   zero_share, flips, flip, sample)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Phases, fill, reference, device, judge)
// Not `evidence` and not `known_verdicts`: only the process that ran the case uses them.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CaseResult, id, platform, outcome, reason, failures, tensors,
                                   points, launches, comparisons, phases, diagnosis, failed_at)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Match, wrong, explained, invented, by_chance)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Explanation, name, stands_for, match)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Diagnosis, named, next, known, left_out, not_tried, pattern)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WatchResult, findings, steps, calls_judged, choices, flips)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DiagnosedWatch, result, diagnosis)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReplayDifference, from, step, part, call, op, tensor, rows,
                                   rows_total, input, digests)

}  // namespace plumb::cases

namespace plumb::golden {

PLUMB_ENUM_BY_NAME(Agreement, 6)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TensorDrift, tensor, rows, rows_moved, elements, elements_moved,
                                   ulp, of_bound, where, histogram, other)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GoldenComparison, agreement, toolchain, drifts, lines)

}  // namespace plumb::golden

namespace plumb::bisect {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(OpsAnswer, findings, died)

}  // namespace plumb::bisect

namespace plumb::tools {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finished, result, findings, golden, op, row, scenario, reproduce,
                                   notes, seconds)

// plumb run: the case of the request's task.
struct CaseRequest {
  bool diagnosed = false;  // a failure is, which runs kernels that are wrong
};
struct CaseAnswer {
  std::optional<Finished> finished;
  std::string unusable;  // why the row or the plug-in cannot be used, which ends the run
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CaseRequest, diagnosed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CaseAnswer, finished, unusable)

// plumb faults: the run of the request's task, answered with a cases::DiagnosedWatch.
struct WatchRequest {
  bool diagnosed = false;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WatchRequest, diagnosed)

}  // namespace plumb::tools
