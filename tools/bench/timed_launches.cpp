// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/timed_launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "cases/drivers/session.h"
#include "cases/tables/contract.h"
#include "cases/tensors/fill.h"
#include "tools/bench/bench_device.h"

namespace plumb::tools {

namespace {

constexpr double kTurnBytes = 512 << 20;  // all buffer sets on a device: more than the L2
constexpr std::size_t kLeastSets = 3;
constexpr int kHostRepetitions = 15;

// Buffer sets with equal inputs and poisoned outputs, used in turn.
class BufferTurns {
 public:
  BufferTurns(cases::Session& session, const cases::Step& step, std::size_t count)
      : session_(session), sets_(count) {
    for (cases::Buffers& set : sets_) {
      set = session.make_buffers();
      if (&set == &sets_.front()) {
        session.set_inputs(step, set);
      } else {
        session.set_inputs_of(session, set);
      }
      session.poison(set, kPoison);
    }
  }

  std::vector<DeviceLaunch> launches() {
    std::vector<DeviceLaunch> all;
    for (cases::Buffers& set : sets_) all.push_back([this, &set] { session_.launch(set); });
    return all;
  }

  // First line of the first failed verdict over all sets; "": all are right.
  std::string wrong(const cases::Step& step) {
    for (const cases::Buffers& set : sets_) {
      std::vector<std::string> damage;
      const cases::TensorSet got = session_.read_back(set, kPoison, damage);
      if (!damage.empty()) return damage.front();
      session_.judge(step, got, {}, "");
      const auto& failures = session_.result().failures;
      if (!failures.empty()) return failures.front().lines.front();
    }
    return "";
  }

 private:
  static constexpr auto kPoison = cases::Poison::nan;
  cases::Session& session_;
  std::vector<cases::Buffers> sets_;
};

std::vector<double> host_seconds(cases::Session& session,
                                 const std::vector<DeviceLaunch>& launches) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  for (int repetition = -1; repetition < kHostRepetitions; ++repetition) {
    const auto start = Clock::now();
    for (const DeviceLaunch& launch : launches) launch();
    session.device().synchronize(session.stream());
    const std::chrono::duration<double> spent = Clock::now() - start;
    if (repetition >= 0) seconds.push_back(spent.count() / static_cast<double>(launches.size()));
  }
  return seconds;
}

TimedLaunches time_in_session(const cases::Problem& problem, const cases::Case& which,
                              const cases::RunOptions& options) {
  TimedLaunches timed;
  cases::CaseResult result;
  const cases::Point point;
  cases::Session session(problem, which, point, options, result);
  const bool simulated = session.device().properties().simulated;
  const double bytes = problem.moved_bytes(problem.make_tensors());
  const auto turns = static_cast<std::size_t>(std::ceil(kTurnBytes / std::max(bytes, 1.0))) + 1;
  const cases::Step step{.seed = cases::seed_of(which.op->name), .live = problem.capacity()};
  BufferTurns buffers(session, step,
                      simulated ? 1 : std::clamp(turns, kLeastSets, std::size_t{64}));
  const auto launches = buffers.launches();
  std::vector<double> seconds =
      simulated ? host_seconds(session, launches)
                : DeviceTimer(session.device(), session.stream()).seconds(launches);
  timed.wrong = buffers.wrong(step);
  if (timed.wrong.empty()) timed.seconds = std::move(seconds);
  return timed;
}

}  // namespace

TimedLaunches time_launches(const cases::Case& any, const cases::RunOptions& options) {
  TimedLaunches timed;
  try {
    const cases::Case which =
        cases::under_contract(options.implementation(options.platform, false), any);
    const auto problem = cases::make_problem(which, options, false);
    return time_in_session(*problem, which, options);
  } catch (const cases::Unsupported& reason) {
    timed.skipped = reason.what();
  } catch (const device::DeviceError& error) {
    const bool legal = error.kind() == device::ErrorKind::unsupported;
    (legal ? timed.skipped : timed.wrong) =
        legal ? error.what() : fmt::format("{}: {}", device::name_of(error.kind()), error.what());
  }
  return timed;
}

}  // namespace plumb::tools
