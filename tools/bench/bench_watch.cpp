// SPDX-License-Identifier: Apache-2.0
//
// Measures the cost of watching a decode step (four engines, recordings, a verdict on every call)
// against the engine alone. Captures are not counted.
#include <fmt/format.h>

#include "decode/watch/watch.h"
#include "tools/bench/bench.h"

namespace plumb::tools {

namespace {

using device::decode::GraphMode;

constexpr cases::ScheduleShape kSchedule{cases::Traffic::permute, cases::Lengths::mixed, 9, 4, 1};

// CPU time per step, from the end of the first step to the end of the last.
class StepClock {
 public:
  void tick() {
    last_ = cpu_seconds();
    if (ticks_++ == 0) first_ = last_;
  }
  double seconds_per_step() const { return (last_ - first_) / (ticks_ - 1); }

 private:
  double first_ = 0, last_ = 0;
  int ticks_ = 0;
};

double watched_step(const cases::DecodeSetup& setup) {
  StepClock clock;
  const auto result = watch(setup, kSchedule, [&](const cases::WatchedStep&) { clock.tick(); });
  if (!result.clean()) throw std::runtime_error(result.findings.front().text);
  return clock.seconds_per_step();
}

double bare_step(const cases::DecodeSetup& setup) {
  StepClock clock;
  cases::WatchedEngine bare(setup);
  bare.engine.capture();
  for (const cases::ScheduledStep& one : make_schedule(kSchedule, setup.geometry)) {
    for (const std::uint64_t id : one.finished) bare.engine.finish(id);
    for (const auto& [id, tokens] : one.admitted) bare.engine.admit(id, tokens);
    bare.engine.step(one.batch);
    bare.device->synchronize();
    clock.tick();
  }
  return clock.seconds_per_step();
}

Measurement measure(const std::string& name, const cases::DecodeSetup& setup) {
  constexpr int kRepetitions = 5;
  std::vector<double> ratios, watched, bare;
  for (int i = 0; i < kRepetitions; ++i) {
    bare.push_back(bare_step(setup));
    watched.push_back(watched_step(setup));
    ratios.push_back(watched.back() / bare.back());
  }
  const Summary ratio = summarize(ratios);
  const double of_bare = 1e3 * summarize(bare).median, of_watched = 1e3 * summarize(watched).median;
  return {name,
          ratio.median,
          ratio.spread,
          "times the bare step",
          {.most = 10},
          fmt::format("{:.1f} ms, bare {:.1f} ms", of_watched, of_bare),
          {{"watched", of_watched, "ms"}, {"bare", of_bare, "ms"}}};
}

cases::DecodeSetup setup_of(GraphMode mode, device::decode::Geometry geometry) {
  cases::DecodeSetup setup;
  setup.mode = mode;
  setup.geometry = std::move(geometry);
  return setup;
}

}  // namespace

std::vector<Measurement> bench_watch() {
  const auto v4 = device::decode::small_geometry(4, 0, 48);
  auto v32 = device::decode::small_v32_geometry(4);
  v32.max_batched_tokens = v4.max_batched_tokens;
  std::vector<Measurement> measured;
  for (const GraphMode mode : {GraphMode::full_and_piecewise, GraphMode::breakable}) {
    measured.push_back(measure(fmt::format("V4, {}", name_of(mode)), setup_of(mode, v4)));
    measured.push_back(measure(fmt::format("V3.2, {}", name_of(mode)), setup_of(mode, v32)));
  }
  return measured;
}

}  // namespace plumb::tools
