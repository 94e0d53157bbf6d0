// SPDX-License-Identifier: Apache-2.0
//
// What happens to a decode step: requests that come, run and go, made from a few numbers. A
// schedule is a list of steps; the same numbers give the same list everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decode/engine/engine.h"
#include "decode/schedule/keep_list.h"

namespace plumb::cases {

// Who is in the batch, step after step.
enum class Traffic {
  steady,          // the same requests
  grow,            // one more, until all are there
  shrink,          // one less, until one is left
  there_and_back,  // many, few, many again: A B A
  permute,         // the same in another order
  replace,         // each step one ends, and another takes its blocks over
  random,          // all of these
  prompts,         // each step one comes whose prompt is prefilled, in chunks, beside the others
  uneven,          // requests that decode take as many of their query tokens as they like
  same_ends,       // each step others, which end where those before did, by other query tokens
  join,            // all are there; each step one ends, and another's prompt waits for odd steps
  prefix,          // each step one ends, and another comes, half of them with the prefix of one
  idle,            // nobody in every second step: an idle rank
  between,         // so many that their tokens are strictly between two captured sizes
  burst            // all come with a prompt at once; each third step others
};
// How long their contexts are; with `prompts`, their prompts.
enum class Lengths {
  equal,
  around_k,     // states: k - 1, k, k + 1
  around_page,  // tokens: one around the borders of a page, a state, the window
  short_ones,   // 0 to 5 tokens: not one compressed state
  mixed,        // long, short, long in one batch
  random,
  beyond_k,     // more than the top-k keeps, all of them
  around_tile,  // candidates: one around the borders of the plan's blocks
  across        // tokens: one to three in front of such a border, and prompts go on behind it
};
// How many of the speculated tokens are accepted.
enum class Acceptance { all, some, none };
// What the engine does between two steps: padding alone, of some size; captures one size anew.
enum class Between { nothing, dummies, captures };
std::string_view name_of(Traffic traffic);
std::string_view name_of(Lengths lengths);

struct ScheduleShape {
  Traffic traffic = Traffic::random;
  Lengths lengths = Lengths::random;
  std::int64_t steps = 8;
  std::int64_t most_requests = 4;  // in one batch
  std::uint64_t seed = 1;
  Acceptance acceptance = Acceptance::all;
  Between between = Between::nothing;
  KeepList keep_requests, keep_steps;  // the rest is left out (kept_schedule.h)
  bool operator==(const ScheduleShape&) const = default;
};
std::string text_of(const ScheduleShape& shape);  // "shrink, around_k, 8 steps, 4 requests, seed 1"

// A request that shares the blocks of another's first tokens.
struct SharedPrefix {
  std::uint64_t request = 0, other = 0;
  std::int64_t tokens = 0;
};

struct ScheduledStep {
  std::vector<std::pair<std::uint64_t, std::int64_t>> admitted;  // request, tokens in its caches
  std::vector<SharedPrefix> shared;                              // admitted too
  std::vector<std::uint64_t> finished;                           // before others are admitted
  std::vector<device::decode::Scheduled> batch;                  // in its order
  // Before the step, or 0: tokens of padding that run; the number of a capture that is done again,
  // from 1.
  std::int64_t dummy_tokens = 0, recapture = 0;
};

// No request outgrows geometry.max_context: it ends first, and another takes its place. Throws
// std::invalid_argument for prompts where the geometry knows no prefill.
std::vector<ScheduledStep> make_schedule(const ScheduleShape& shape,
                                         const device::decode::Geometry& geometry);

}  // namespace plumb::cases
