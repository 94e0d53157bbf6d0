// SPDX-License-Identifier: Apache-2.0
#include "faults/decode/fault_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "cases/tensors/fill.h"
#include "faults/decode/router_flips.h"

namespace plumb::cases {

namespace {

using device::decode::Geometry;
using device::decode::GraphMode;

constexpr GraphMode kModes[] = {GraphMode::none,
                                GraphMode::piecewise,
                                GraphMode::full,
                                GraphMode::full_decode_only,
                                GraphMode::full_and_piecewise,
                                GraphMode::breakable};
constexpr Traffic kTraffic[] = {Traffic::steady,         Traffic::grow,    Traffic::shrink,
                                Traffic::there_and_back, Traffic::permute, Traffic::replace,
                                Traffic::random,         Traffic::prompts, Traffic::uneven,
                                Traffic::join,           Traffic::prefix,  Traffic::idle,
                                Traffic::same_ends,      Traffic::between, Traffic::burst,
                                Traffic::chunks,         Traffic::hits};
constexpr std::int64_t kLengths = 10;

// V4 with a drafter. Batches are padded to one request or to four.
Geometry v4_geometry(std::int64_t speculated) {
  Geometry geometry = device::decode::small_geometry(4, speculated, 16);
  geometry.capture_sizes = {1 + speculated, 4 + 4 * speculated};
  geometry.drafter = true;
  return geometry;
}

DecodeRun with_fault(const std::string& platform, const DecodeFault& fault, std::uint64_t seed) {
  DecodeRun run{fault.name, &fault, {.platform = platform}, fault.schedule, ""};
  run.schedule.seed += seed;
  try {
    run.setup = fault.inject(run.setup);
  } catch (const NotOnThisPlatform& why) {
    run.not_here = why.what();
  }
  return run;
}

// One request, one layer and one plan part more, contexts twice as long, graphs of other sizes and
// one of a full batch.
Geometry other_geometry(Geometry g) {
  g.max_requests += 1;
  g.max_context *= 2;
  g.plan_parts += 1;
  g.layers.push_back(g.layers.front());
  const std::int64_t full = g.max_decode_tokens();
  g.capture_sizes = device::decode::default_capture_sizes(g);
  std::erase_if(g.capture_sizes, [&](std::int64_t size) { return size >= full; });
  g.capture_sizes.push_back(full);
  return g;
}

// The same run with plumb's own policies, kernels and device: no fault is planted.
DecodeRun without_fault(DecodeRun run) {
  run.name = "as " + run.name + ", without it";
  run.fault = nullptr;
  run.setup.policies = {};
  run.setup.implementation = nullptr;
  run.setup.wrap = nullptr;
  return run;
}

bool same(const DecodeRun& a, const DecodeRun& b) {
  const auto key = [](const DecodeSetup& s) {
    const auto& c = s.conditions;
    return std::tie(s.platform, s.mode, s.in_flight, s.geometry, c.order, c.seed, c.policy,
                    c.checked, c.page_guards);
  };
  return key(a.setup) == key(b.setup) && a.schedule == b.schedule;
}

DecodeRun clean_run(const std::string& platform, GraphMode mode, Geometry geometry,
                    const ScheduleShape& schedule) {
  DecodeRun run{fmt::format("{}, {}", name_of(schedule.traffic), name_of(mode)),
                nullptr,
                {.platform = platform},
                schedule,
                ""};
  if (geometry.architecture == device::decode::Architecture::v32) run.name = "V3.2, " + run.name;
  run.setup.mode = mode;
  run.setup.geometry = std::move(geometry);
  return run;
}

// Graphs of whole steps have one token per request [3.3].
Geometry v32_geometry(GraphMode mode, std::int64_t speculated) {
  const bool full = mode == GraphMode::full || mode == GraphMode::full_decode_only ||
                    mode == GraphMode::full_and_piecewise;
  if (full) speculated = 0;
  Geometry geometry = device::decode::small_v32_geometry(4, speculated, 64, 48);
  geometry.capture_sizes = {1 + speculated, 4 + 4 * speculated};
  return geometry;
}

// So many requests that a step has three chunks of prefills, which use one workspace in turn. Where
// the third chunk starts does not follow from the size of the first.
constexpr std::int64_t kBurst = 2 * device::decode::kPrefillRequests + 2;
Geometry for_burst(Geometry geometry) {
  const std::int64_t more = (kBurst - geometry.max_requests) * geometry.query_tokens();
  geometry.max_requests = kBurst;
  geometry.max_batched_tokens += more + 8 * kBurst;
  geometry.capture_sizes.back() += more;
  return geometry;
}

// A sequence of numbers that a seed determines.
class Draws {
 public:
  explicit Draws(std::uint64_t stream) : stream_(stream) {}
  std::int64_t of(std::int64_t choices) { return integer(stream_, draws_++, 0, choices - 1); }

 private:
  std::uint64_t stream_, draws_ = 0;
};

Geometry random_geometry(GraphMode mode, Draws& draw) {
  constexpr std::int64_t kSpeculated[] = {0, 0, 1, 2, 3, 8};
  const std::int64_t speculated = kSpeculated[draw.of(std::ssize(kSpeculated))];
  if (draw.of(3) == 0) return v32_geometry(mode, speculated);
  Geometry geometry = v4_geometry(speculated);
  geometry.frees_window = draw.of(2) == 0;
  if (draw.of(3) == 0) geometry.lists = device::decode::Lists::dense;
  return geometry;
}

// The n-th random run.
DecodeRun random_run(const std::string& platform, std::int64_t n, std::int64_t steps,
                     std::uint64_t seed) {
  const std::uint64_t stream = mix(seed, static_cast<std::uint64_t>(n));
  Draws draw(stream);
  const GraphMode mode = kModes[n % std::ssize(kModes)];
  const Geometry geometry = random_geometry(mode, draw);
  ScheduleShape schedule{kTraffic[draw.of(std::ssize(kTraffic))],
                         static_cast<Lengths>(draw.of(kLengths)), steps, 1 + draw.of(4),
                         mix(stream, 1)};
  schedule.acceptance = static_cast<Acceptance>(draw.of(3));
  schedule.between = static_cast<Between>(draw.of(4));
  const bool burst = schedule.traffic == Traffic::burst;
  if (burst) schedule.most_requests = kBurst;
  DecodeRun run = clean_run(platform, mode, burst ? for_burst(geometry) : geometry, schedule);
  run.name = fmt::format("{}: {}", n, run.name);
  run.setup.conditions.order = static_cast<device::Order>(draw.of(3));
  run.setup.conditions.policy = static_cast<device::Policy>(draw.of(3));
  run.setup.conditions.seed = schedule.seed;
  run.setup.environment = {.seed = 1 + stream % 1000, .churns = draw.of(2) == 0, .fresh_every = 10};
  return run;
}

}  // namespace

std::vector<DecodeRun> fault_runs(const std::vector<std::string>& platforms,
                                  const std::vector<const DecodeFault*>& faults,
                                  std::uint64_t seed) {
  std::vector<DecodeRun> runs;
  for (const std::string& platform : platforms) {
    for (const DecodeFault* fault : faults) runs.push_back(with_fault(platform, *fault, seed));
  }
  return runs;
}

std::vector<DecodeRun> elsewhere_runs(const std::vector<std::string>& platforms,
                                      const std::vector<const DecodeFault*>& faults,
                                      std::uint64_t seed) {
  constexpr std::uint64_t kSeed = 7919;
  std::vector<DecodeRun> runs;
  for (const DecodeFault* fault : faults) {
    if (fault->within_numerics) continue;
    const std::string& platform = platforms[runs.size() % platforms.size()];
    DecodeRun& run = runs.emplace_back(with_fault(platform, *fault, seed + kSeed));
    run.elsewhere = true;
    if (!run.not_here.empty()) continue;  // the fault was not planted
    run.setup.geometry = other_geometry(run.setup.geometry);
    run.schedule.most_requests += 1;
    run.schedule.steps += 2;
  }
  return runs;
}

WatchResult result_of(const DecodeRun& run) {
  WatchResult result = watch(run.setup, run.schedule);
  if (run.fault == nullptr || !run.fault->within_numerics) return result;
  const RouterFlips counted = count_router_flips(without_fault(run).setup, run.setup, run.schedule);
  result.choices = counted.choices;
  result.flips = counted.flips;
  return result;
}

std::vector<DecodeRun> control_runs(const std::vector<std::string>& platforms,
                                    const std::vector<const DecodeFault*>& faults,
                                    std::uint64_t seed) {
  std::vector<DecodeRun> runs;
  for (DecodeRun& run : fault_runs(platforms, faults, seed)) {
    if (!run.not_here.empty()) continue;
    DecodeRun control = without_fault(std::move(run));
    const auto there = [&](const DecodeRun& other) { return same(control, other); };
    if (std::none_of(runs.begin(), runs.end(), there)) runs.push_back(std::move(control));
  }
  return runs;
}

std::vector<DecodeRun> traffic_runs(const std::vector<std::string>& platforms, std::uint64_t seed) {
  constexpr std::int64_t kSteps = 3, kRequests = 4;
  std::vector<DecodeRun> runs;
  std::size_t n = 0;
  const auto platform = [&](std::size_t i) { return platforms[i % platforms.size()]; };
  for (const Traffic traffic : kTraffic) {
    for (const GraphMode mode : kModes) {
      const auto lengths = static_cast<Lengths>(++n % kLengths);
      const bool burst = traffic == Traffic::burst;
      const auto fitting = [&](Geometry g) { return burst ? for_burst(std::move(g)) : g; };
      const ScheduleShape schedule{traffic, lengths, kSteps, burst ? kBurst : kRequests, 1 + seed};
      const bool uneven = traffic == Traffic::uneven || traffic == Traffic::same_ends;
      const std::int64_t speculated = uneven ? 2 : 0;
      runs.push_back(clean_run(platform(n), mode, fitting(v4_geometry(speculated)), schedule));
      runs.push_back(
          clean_run(platform(n + 1), mode, fitting(v32_geometry(mode, speculated)), schedule));
    }
    ++n;  // gives the same mode other lengths and another platform
  }
  return runs;
}

std::vector<DecodeRun> random_runs(const std::vector<std::string>& platforms, std::int64_t steps,
                                   std::uint64_t seed) {
  constexpr std::int64_t kSteps = 20;
  std::vector<DecodeRun> runs;
  for (std::int64_t n = 0; steps > 0; ++n, steps -= kSteps) {
    const auto i = static_cast<std::size_t>(n / std::ssize(kModes)) % platforms.size();
    runs.push_back(random_run(platforms[i], n, std::min(steps, kSteps), seed));
  }
  return runs;
}

std::vector<DecodeRun> production_runs(const std::vector<std::string>& platforms,
                                       std::int64_t steps, std::uint64_t seed) {
  constexpr std::int64_t kRows = 24;
  Geometry dense = device::decode::production_geometry();
  dense.lists = device::decode::Lists::dense;
  const Geometry geometries[] = {device::decode::production_geometry(), dense,
                                 device::decode::production_v32_geometry()};
  std::vector<DecodeRun> runs;
  for (const std::string& platform : platforms) {
    for (const Geometry& geometry : geometries) {
      for (const GraphMode mode : {GraphMode::full_and_piecewise, GraphMode::breakable}) {
        const ScheduleShape schedule{Traffic::join, Lengths::beyond_k, 0, geometry.max_requests,
                                     1 + seed};
        runs.push_back(clean_run(platform, mode, geometry, schedule));
        const bool packed = geometry.lists == device::decode::Lists::ragged;
        runs.back().name = (packed ? "production, " : "production, dense, ") + runs.back().name;
        runs.back().setup.sample = kRows;
      }
    }
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto left = std::ssize(runs) - static_cast<std::int64_t>(i);
    runs[i].schedule.steps = steps / left;
    steps -= runs[i].schedule.steps;
  }
  std::erase_if(runs, [](const DecodeRun& run) { return run.schedule.steps == 0; });
  return runs;
}

}  // namespace plumb::cases
