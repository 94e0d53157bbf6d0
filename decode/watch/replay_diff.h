// SPDX-License-Identifier: Apache-2.0
//
// The same steps twice, and what every call made, recorded inside the graphs: the first
// difference is where a race, or something that a replay keeps, comes in. Ops promise the same bits
// on one platform; whatever else is different about the second run may not matter.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decode/schedule/schedule.h"
#include "decode/watch/watched_engine.h"

namespace plumb::cases {

// What is different about the second run.
struct SecondRun {
  enum class EngineUse {
    kept,    // one engine takes all steps
    eager,   // it runs each of them eagerly on fresh state
    renewed  // each step is taken by an engine made anew, with the requests and caches of the old
  };
  std::string name;  // "threads in reverse order"
  DecodeSetup setup;
  EngineUse engine = EngineUse::kept;
};
// On a simulated device all that it may do differently; on a real one the same once more.
std::vector<SecondRun> second_runs(const DecodeSetup& setup);

struct ReplayDifference {
  // What the call made the difference from.
  enum class From {
    the_op,          // it was given the same
    an_op_that_may,  // it was given the same, and does not promise the same bits
    its_inputs,      // other bytes, which no call of the step has made
    its_memory,      // an output lies over an input
    nothing          // no call: the results alone differ
  };
  From from = From::the_op;
  std::int64_t step = 0;
  std::string part, call, op, tensor;
  std::vector<std::int64_t> rows;
  std::int64_t rows_total = 0;
  std::string input;                          // that differs
  std::array<std::uint64_t, 2> digests = {};  // XXH3 of the tensor, in either run
};
std::string text_of(const ReplayDifference& difference);

// Nothing: every call of every step made the same.
std::optional<ReplayDifference> first_difference(const DecodeSetup& setup, const SecondRun& second,
                                                 const ScheduleShape& shape);

}  // namespace plumb::cases
