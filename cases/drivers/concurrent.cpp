// SPDX-License-Identifier: Apache-2.0
//
// Several runners on one device. Each runner is a host thread with its own stream, graph, buffers
// and op state, and replays with its own inputs while the other runners and the background load (a
// kernel and a copy) run. Each runner's result is compared bit by bit with the same work done
// alone.
//
// All threads meet at a barrier before any of them waits for its work, so that a simulated device
// always has the same work pending when it starts to execute (device/sim/sim_device.h).
#include <fmt/format.h>

#include <algorithm>

#include "cases/drivers/background_load.h"
#include "cases/drivers/session.h"
#include "cases/drivers/thread_team.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

struct ConcurrentRunner {
  CaseResult counts;  // launches and times of this runner
  std::unique_ptr<Session> session;
  Buffers buffers;
  CapturedCall graph;
  Step step;
  TensorSet got;
  std::vector<std::string> damage;
};

// The error that the device raised in one thread; both strings are empty if there was none.
struct ThreadError {
  std::string_view kind;  // name of the error's kind: "race"
  std::string text;       // full message: "race: ..."
};

ThreadError error_of(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const device::DeviceError& device_error) {
    if (device_error.kind() == device::ErrorKind::unsupported) {
      throw Unsupported(device_error.what());
    }
    const std::string_view kind = device::name_of(device_error.kind());
    return {kind, fmt::format("{}: {}", kind, device_error.what())};
  }
}

// After one thread's error, calls of other threads fail with "the device is lost since: ..." and
// the same text. Reporting these copies would repeat the first error.
bool repeats_another(const ThreadError& error, const std::vector<ThreadError>& all) {
  return std::any_of(all.begin(), all.end(), [&](const ThreadError& other) {
    const std::size_t what = other.text.find(": ");
    return what != std::string::npos && other.text.size() < error.text.size() &&
           error.text.ends_with(other.text.substr(what));
  });
}

// The entry of the background kernel. If the implementation runs in another process, it has its own
// entry for it there.
const device::OpEntry& hog_of(const device::Device& device, const RunOptions& options) {
  const device::OpEntry* hog =
      device::find_entry(options.implementation(options.platform, false), "occupancy_hog");
  return hog != nullptr ? *hog : own_hog(device);
}

class SideBySide {
 public:
  SideBySide(Session& alone, const Scenario& scenario, std::uint64_t seed,
             const RunOptions& options)
      : alone_(alone),
        scenario_(scenario),
        seed_(seed),
        shared_(options.shared_by_runners),
        // On a real device one replay may end before the next runner's starts, so it replays 8
        // times to make the runners overlap.
        replays_(alone.device().properties().simulated ? 1 : 8),
        runners_(static_cast<std::size_t>(scenario.runners)),
        team_(scenario.runners + 1) {
    // Created on one thread, in a fixed order: a simulated device numbers its streams, and the
    // numbers must not change from run to run.
    for (std::size_t r = 0; r < runners_.size(); ++r) {
      runners_[r].session =
          std::make_unique<Session>(alone, fmt::format("runner {}", r + 1), runners_[r].counts);
    }
    load_ = std::make_unique<BackgroundLoad>(alone.device(), hog_of(alone.device(), options));
  }

  ~SideBySide() {
    CaseResult& total = alone_.result();
    for (const ConcurrentRunner& runner : runners_) {
      total.launches += runner.counts.launches;
      total.phases.fill += runner.counts.phases.fill;
      total.phases.device += runner.counts.phases.device;
      total.phases.judge += runner.counts.phases.judge;
    }
  }

  void run() {
    if (!warm_up() || !capture()) return;
    capture_alone();
    for (std::size_t index = 0; index < scenario_.steps.size(); ++index) {
      if (!replay(index)) return;
      judge(index);
    }
  }

 private:
  using Part = std::function<void(ConcurrentRunner&)>;

  std::string name_of(const ConcurrentRunner& runner) const {
    return fmt::format("runner {} of {}", &runner - runners_.data() + 1, runners_.size());
  }

  // Runs `part` on all runners' threads at once, and `beside` on the background load's thread.
  // Returns false after an error, which is reported as a failure.
  bool together(
      const std::string& when, const Part& part,
      const std::function<void(BackgroundLoad&)>& beside = [](BackgroundLoad&) {}) {
    const auto errors = team_.run([&](int thread) {
      const auto r = static_cast<std::size_t>(thread);
      if (r == runners_.size()) return beside(*load_);
      part(runners_[r]);
    });
    std::vector<ThreadError> said;
    for (const std::exception_ptr& error : errors) said.push_back(error_of(error));
    bool all_well = true;
    for (std::size_t r = 0; r < said.size(); ++r) {
      if (said[r].text.empty()) continue;
      all_well = false;
      if (!repeats_another(said[r], said)) fail(r, when, said[r]);
    }
    return all_well;
  }

  // On a simulated device any thread's call may execute another thread's work, so the calling
  // thread does not tell whose work failed. If the error names a stream, the report names the
  // stream instead.
  void fail(std::size_t r, const std::string& when, const ThreadError& error) {
    const bool says_stream = error.text.find(": stream ") != std::string::npos;
    const std::string who = r < runners_.size() ? name_of(runners_[r]) : "the background load";
    std::vector<std::string> lines = {error.text};
    if (says_stream) {
      lines[0] += fmt::format(" (runner 1 has stream 2, and so on to {})", runners_.size() + 1);
    }
    alone_.note_damage(error.kind, lines);
    alone_.fail(
        fmt::format("{}, {}; {}", says_stream ? "the runners" : who, when, alone_.point().text()),
        std::move(lines));
  }

  // Every thread allocates its buffers at the same time as the others. Then every thread calls the
  // op once.
  bool warm_up() {
    const Step step = make_step(alone_, {100, 0}, 0, seed_);
    const bool made = together(
        "warm-up",
        [&](ConcurrentRunner& runner) {
          const bool first = &runner == runners_.data();
          if (first || shared_ != RunOptions::Sharing::inputs) {
            runner.buffers = runner.session->make_buffers();
          }
        },
        [](BackgroundLoad& load) { load.allocate(); });
    if (!made) return false;
    share();
    return together("warm-up",
                    [&](ConcurrentRunner& runner) {
                      runner.session->set_inputs(step, runner.buffers);
                      runner.session->poison(runner.buffers, alone_.point().poison);
                      runner.session->launch(runner.buffers);
                    }) &&
           wait("warm-up");
  }

  // Makes the runners share inputs or state, if a planted fault asks for it.
  void share() {
    for (ConcurrentRunner& runner : runners_) {
      if (&runner == runners_.data()) continue;
      if (shared_ == RunOptions::Sharing::inputs) {
        runner.buffers = runner.session->make_buffers(&runners_.front().buffers);
      }
      if (shared_ == RunOptions::Sharing::state) {
        runner.buffers.state = runners_.front().buffers.state;
      }
    }
  }

  bool wait(const std::string& when) {
    return together(when, [](ConcurrentRunner& runner) {
      runner.session->device().synchronize(runner.session->stream());
    });
  }

  // All captures are open at the same time, while the background load runs and another thread
  // allocates.
  bool capture() {
    const bool captured =
        together(
            "capture",
            [&](ConcurrentRunner& runner) {
              if (shared_ != RunOptions::Sharing::state)
                renew_state(*runner.session, runner.buffers);
              runner.session->device().begin_capture(runner.session->stream());
            },
            [](BackgroundLoad& load) { load.begin(); }) &&
        together(
            "capture", [](ConcurrentRunner& runner) { runner.session->launch(runner.buffers); },
            [](BackgroundLoad& load) { load.allocate_meanwhile(); }) &&
        together("capture",
                 [](ConcurrentRunner& runner) { runner.graph = end_capture(*runner.session); });
    return captured && finish_load("capture");
  }

  bool finish_load(const std::string& when) {
    std::vector<std::string> lines;
    const bool done =
        together(when, [](ConcurrentRunner&) {}, [&](BackgroundLoad& load) { load.finish(lines); });
    if (!lines.empty()) alone_.fail(when + "; " + alone_.point().text(), lines);
    return done && lines.empty();
  }

  void renew_state(Session& session, Buffers& buffers) const {
    buffers.state = session.problem().make_state(buffers.addresses);
  }

  // Launches once before the capture, as the runners did: the scratch size of a capture depends on
  // earlier launches.
  void capture_alone() {
    buffers_ = alone_.make_buffers();
    alone_.set_inputs_of(*runners_.front().session, buffers_);
    alone_.poison(buffers_, alone_.point().poison);
    alone_.launch(buffers_);
    alone_.device().synchronize(alone_.stream());
    renew_state(alone_, buffers_);
    alone_.device().begin_capture(alone_.stream());
    alone_.launch(buffers_);
    graph_ = end_capture(alone_);
    for (const ConcurrentRunner& runner : runners_) {
      if (runner.graph.kernels == graph_.kernels) continue;
      alone_.fail(name_of(runner) + ", capture; " + alone_.point().text(),
                  {fmt::format("the captured graph launches {}; a graph captured alone launches {}",
                               runner.graph.kernels, graph_.kernels)});
    }
  }

  // Runner r is r steps ahead in the schedule, so that full and nearly empty batches run at the
  // same time.
  bool replay(std::size_t index) {
    const std::string when = fmt::format("step {}", index);
    const bool replayed =
        together(when,
                 [&](ConcurrentRunner& runner) {
                   const auto r = static_cast<std::size_t>(&runner - runners_.data());
                   const auto& plan = scenario_.steps[(index + r) % scenario_.steps.size()];
                   runner.step = make_step(alone_, plan, index + r, mix(seed_, 1000 + r));
                   runner.session->set_inputs(runner.step, runner.buffers);
                 }) &&
        wait(when) &&
        together(
            when, [&](ConcurrentRunner& runner) { replay_all(runner); },
            [](BackgroundLoad& load) { load.begin(); }) &&
        wait(when) &&  // before a copy back is enqueued, which would make the pending work random
        together(when, [&](ConcurrentRunner& runner) {
          runner.damage.clear();
          runner.got = runner.session->fetch(runner.buffers, alone_.point().poison, runner.damage);
        });
    return replayed && finish_load(when);
  }

  void replay_all(ConcurrentRunner& runner) const {
    Session& session = *runner.session;
    for (int i = 0; i < replays_; ++i) {
      session.poison(runner.buffers, alone_.point().poison);
      session.device().replay(runner.graph.exec, session.stream());
    }
  }

  // Compares the result of every runner with the same work done alone. Also judges one runner per
  // step against the reference, or all runners if the op is not deterministic.
  void judge(std::size_t index) {
    std::vector<std::string> guards;
    alone_.check_guards(guards);
    if (!guards.empty()) alone_.fail(fmt::format("step {}", index), std::move(guards));
    for (std::size_t r = 0; r < runners_.size(); ++r) {
      ConcurrentRunner& runner = runners_[r];
      const std::string context =
          fmt::format("{}, {}", name_of(runner), describe(alone_, runner.step, index));
      std::vector<std::string> damage;
      const TensorSet alone = replay_alone(runner, damage);
      if (!damage.empty()) alone_.fail(context + "; alone", std::move(damage));
      alone_.compare_bits(runner.step, runner.got, alone, "differs from the same work run alone",
                          context);
      if (!alone_.deterministic() || r == index % runners_.size()) {
        alone_.judge(runner.step, runner.got, std::move(runner.damage), context);
      } else if (!runner.damage.empty()) {
        alone_.fail(context, std::move(runner.damage));
      }
    }
  }

  TensorSet replay_alone(const ConcurrentRunner& runner, std::vector<std::string>& damage) {
    alone_.set_inputs_of(*runner.session, buffers_);
    alone_.poison(buffers_, alone_.point().poison);
    alone_.device().replay(graph_.exec, alone_.stream());
    return alone_.read_back(buffers_, alone_.point().poison, damage);
  }

  Session& alone_;
  const Scenario& scenario_;
  const std::uint64_t seed_;
  const RunOptions::Sharing shared_;
  const int replays_;
  std::vector<ConcurrentRunner> runners_;
  std::unique_ptr<BackgroundLoad> load_;
  Buffers buffers_;  // of the session that works alone
  CapturedCall graph_;
  ThreadTeam team_;
};

}  // namespace

void require_memory(Session& alone, std::int64_t copies, std::string_view what) {
  const std::size_t there = alone.device().properties().memory_bytes;
  if (there == 0) return;  // a simulated device has no limit
  const TensorSet tensors = alone.problem().make_tensors();
  std::size_t needed = 0;
  for (const HostTensor& tensor : tensors.all()) {
    needed += static_cast<std::size_t>(copies + 1) * device_bytes(tensor);
  }
  if (needed <= there / 4 * 3) return;
  throw Unsupported(
      fmt::format("{} {} and the same work run alone need {:.0f} GiB, and the device has {:.0f}",
                  copies, what, in_gib(needed), in_gib(there)));
}

void run_concurrent(Session& alone, const Scenario& scenario, std::uint64_t seed,
                    const RunOptions& options) {
  require_memory(alone, scenario.runners, "runners");
  SideBySide(alone, scenario, seed, options).run();
}

}  // namespace plumb::cases
