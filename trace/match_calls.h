// SPDX-License-Identifier: Apache-2.0
//
// Finds calls of two traces that read the same bits, in any step or batch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cases/studies/call_difference.h"
#include "trace/call_outline.h"

namespace plumb::trace {

using TraceOutline = std::vector<StepOutline>;  // ordered by step, then rank

struct CallRef {
  std::size_t file = 0, call = 0;
  auto operator<=>(const CallRef&) const = default;
};

// Digests of each row of a call. Empty: its rows cannot be separated.
struct RowDigests {
  std::vector<cases::RowDigest> inputs, outputs;
};

// Two calls with equal inputs, or with rows that have equal inputs.
struct MatchedCalls {
  CallRef a, b;
  bool whole = true;                   // false: only rows match
  std::int64_t rows = 0;               // if not whole: number of matched rows
  bool same = false;                   // all outputs (whole) or matched rows have the same bits
  std::vector<cases::RowPair> differ;  // if not whole: rows with different bits
};

// Two calls that did not match, at the same place (rank, step, layer, op): their inputs differ, or
// values were not recorded.
struct CarriedCall {
  CallRef a, b;
};

struct Matching {
  std::vector<MatchedCalls> matched;  // ordered as in A
  std::vector<CarriedCall> carried;
  std::vector<CallRef> only_a, only_b;
};

// Only calls of the same rank, layer and op match. First calls at the same place with the same
// inputs match, then calls at other places with the same inputs, then rows with the same inputs.
// `rows_of` is called at most once per trace, with the unmatched calls whose rows may match, and
// returns its answers in the same order.
using AskRows =
    std::function<std::vector<RowDigests>(const TraceOutline&, const std::vector<CallRef>& calls)>;
Matching match_calls(const TraceOutline& a, const TraceOutline& b, const AskRows& rows_of);

}  // namespace plumb::trace
