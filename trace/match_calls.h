// SPDX-License-Identifier: Apache-2.0
//
// Which calls of two traces read the same bits, whatever step or batch they stand in.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cases/studies/call_difference.h"
#include "trace/call_outline.h"

namespace plumb::trace {

using TraceOutline = std::vector<StepOutline>;  // by step, then by rank

struct CallRef {
  std::size_t file = 0, call = 0;
  auto operator<=>(const CallRef&) const = default;
};

// Digests of the rows of a call. Empty: its rows cannot be told apart.
struct RowDigests {
  std::vector<cases::RowDigest> inputs, outputs;
};

// Two calls with equal inputs, or with rows that have equal inputs.
struct MatchedCalls {
  CallRef a, b;
  bool whole = true;
  std::int64_t rows = 0;               // of rows: how many are matched
  bool same = false;                   // of whole calls: all outputs have the same bits
  std::vector<cases::RowPair> differ;  // of rows: those with other bits
};

// Calls of one place (rank, step, layer, op) with other inputs.
struct CarriedCall {
  CallRef a, b;
};

struct Matching {
  std::vector<MatchedCalls> matched;  // in the order of A
  std::vector<CarriedCall> carried;
  std::vector<CallRef> only_a, only_b;
};

// Calls of one rank, layer and op match. First those with the same place and the same inputs, then
// those with the same inputs at another place, then rows with the same inputs. `rows_of` is asked
// once for all calls of a trace that are left: its answers are in the same order.
using AskRows =
    std::function<std::vector<RowDigests>(const TraceOutline&, const std::vector<CallRef>& calls)>;
Matching match_calls(const TraceOutline& a, const TraceOutline& b, const AskRows& rows_of);

}  // namespace plumb::trace
