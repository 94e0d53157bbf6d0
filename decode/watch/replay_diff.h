// SPDX-License-Identifier: Apache-2.0
//
// Runs the same steps twice and compares what every call wrote, recorded inside the graphs. The
// first difference shows where a race, or state kept by a replay, enters. An op that declares
// itself deterministic promises equal bits on one platform, whatever else differs in the second
// run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decode/schedule/schedule.h"
#include "decode/watch/watched_engine.h"

namespace plumb::cases {

// How the second run differs.
struct SecondRun {
  enum class EngineUse {
    kept,    // one engine runs all steps
    eager,   // one engine runs each step eagerly with fresh state
    renewed  // a newly created engine, with the old one's requests and caches, runs each step
  };
  std::string name;  // "threads in reverse order"
  DecodeSetup setup;
  EngineUse engine = EngineUse::kept;
};
// On any device: one run under the same conditions. On a simulated device also one run for each
// condition that can be changed.
std::vector<SecondRun> second_runs(const DecodeSetup& setup);

struct ReplayDifference {
  // Where the first different call got the difference from.
  enum class From {
    the_op,          // inputs are equal
    an_op_that_may,  // inputs are equal, and the op does not promise equal bits
    its_inputs,      // inputs differ, in bytes that no call of the step wrote
    its_memory,      // an output overlaps an input
    nothing          // no call differs, only the results
  };
  From from = From::the_op;
  std::int64_t step = 0;
  std::string part, call, op, tensor;
  std::vector<std::int64_t> rows;
  std::int64_t rows_total = 0;
  std::string input;                          // the input that differs
  std::array<std::uint64_t, 2> digests = {};  // XXH3 of the tensor in both runs
};
std::string text_of(const ReplayDifference& difference);

// nullopt: all calls of all steps are equal.
std::optional<ReplayDifference> first_difference(const DecodeSetup& setup, const SecondRun& second,
                                                 const ScheduleShape& shape);

}  // namespace plumb::cases
