// SPDX-License-Identifier: Apache-2.0
//
// Schedules of decode steps: requests that come, run and go, generated from a few numbers. A
// schedule is a list of steps; the same numbers give the same list on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decode/engine/engine.h"
#include "decode/schedule/keep_list.h"

namespace plumb::cases {

// How the batch changes from step to step.
enum class Traffic {
  steady,          // the same requests in each step
  grow,            // one request more per step, until all are there
  shrink,          // one request fewer per step, until one is left
  there_and_back,  // many requests, few, many again
  permute,         // the same requests in another order
  replace,         // per step one request ends, and a new one takes over its blocks
  random,          // a random mix of all these
  prompts,         // per step one request comes, whose prompt is prefilled in chunks beside decodes
  uneven,          // requests decode different numbers of tokens
  same_ends,       // per step new requests: same lengths, other numbers of query tokens
  join,            // full batch; per step one ends, and a new one's prompt waits for an odd step
  prefix,          // per step one request ends and one comes; half of these share a prefix
  idle,            // every second step has no request, as on an idle rank
  between,         // the token count is strictly between two captured sizes
  burst,           // all requests come at once, with prompts, and are replaced in every third step
  chunks,          // all requests come at once, with prompts in chunks of one size
  hits             // per step the newest request ends, and one comes with the prefix of the oldest
};
// Lengths of the contexts; with Traffic::prompts, join and burst, of the prompts.
enum class Lengths {
  equal,
  around_k,     // compressed states: k - 1, k, k + 1
  around_page,  // tokens: within one of a border of page, state or window
  short_ones,   // 0 to 5 tokens; mostly too few for a compressed state
  mixed,        // long and short contexts in one batch
  random,
  beyond_k,     // all contexts longer than the top-k keeps
  around_tile,  // candidates: within one of a border of the plan's blocks
  across,       // tokens: one to three before such a border; prompts end after it
  near_blocks   // tokens: three or four before whole blocks in every cache
};
// How many speculated tokens are accepted.
enum class Acceptance { all, some, none };
// What the engine does between two steps: run a step of padding only, or capture one size again.
// `turns`: nothing twice, then one of each.
enum class Between { nothing, dummies, captures, turns };
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
  KeepList keep_requests, keep_steps;  // others are left out (kept_schedule.h)
  bool operator==(const ScheduleShape&) const = default;
};
std::string text_of(const ScheduleShape& shape);  // "shrink, around_k, 8 steps, 4 requests, seed 1"

// A new request that shares the blocks of another's first `tokens` tokens.
struct SharedPrefix {
  std::uint64_t request = 0, other = 0;
  std::int64_t tokens = 0;
};

struct ScheduledStep {
  std::vector<std::pair<std::uint64_t, std::int64_t>> admitted;  // request id; tokens in its caches
  std::vector<SharedPrefix> shared;                              // admitted too, before `admitted`
  std::vector<std::uint64_t> finished;                           // before others are admitted
  std::vector<device::decode::Scheduled> batch;                  // in the order of the batch's rows
  // Done before the step; 0: not done. dummy_tokens: size of a padding step. recapture: number,
  // from 1, of a capture that is repeated.
  std::int64_t dummy_tokens = 0, recapture = 0;
};

// A request that would outgrow geometry.max_context ends, and another takes its place. Throws
// std::invalid_argument for traffic with prompts if geometry.max_batched_tokens is 0.
std::vector<ScheduledStep> make_schedule(const ScheduleShape& shape,
                                         const device::decode::Geometry& geometry);

}  // namespace plumb::cases
