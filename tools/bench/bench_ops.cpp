// SPDX-License-Identifier: Apache-2.0
//
// Measures each op's reference (values and bounds, without the judge's comparisons) against the
// time that its bytes and operations need (Problem::reference_work).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cases/drivers/session.h"
#include "cases/judge/phase.h"
#include "cases/tensors/fill.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_rates.h"

namespace plumb::tools {

namespace {

constexpr double kMostCost = 5e8;  // in ns, of the launch that makes the outputs
constexpr int kRunsOfOp = 5;

// Ops whose reference should reach a fifth of the machine's rates. Other ops have no target.
constexpr std::array<std::string_view, 11> kWithTarget = {"sparse_mla_decode",
                                                          "sparse_mla_prefill",
                                                          "fp8_mqa_logits",
                                                          "fp8_paged_mqa_logits",
                                                          "mhc_pre",
                                                          "rms_norm",
                                                          "fused_add_rms_norm",
                                                          "q_kv_rms_norm",
                                                          "q_head_rms_norm_rope",
                                                          "mtp_input_rms_norm",
                                                          "mtp_shared_head_rms_norm"};
constexpr double kTarget = 0.2;

bool has_target(std::string_view op) {
  return std::find(kWithTarget.begin(), kWithTarget.end(), op) != kWithTarget.end();
}

// A case with the stored outputs of its launch, so that the reference can run repeatedly.
class StoredCase {
 public:
  StoredCase(const cases::Problem& problem, const cases::Case& which)
      : step_{.seed = cases::seed_of(which.id()), .live = problem.capacity()},
        problem_(problem),
        session_(problem, which, point_, options_, result_) {
    cases::Buffers buffers = session_.make_buffers();
    session_.set_inputs(step_, buffers);
    session_.poison(buffers, point_.poison);
    session_.launch(buffers);
    std::vector<std::string> damage;
    stored_ = session_.read_back(buffers, point_.poison, damage);
    const auto& implementation = device::builtin_implementation(kBenchPlatform);
    declared_ = device::find_entry(implementation, which.op->name)->numerics;
    declared_.stores_partials = 0;  // judge only the op's results, without partial sums
  }

  // Computes the right values of the launch.
  void run_reference() const {
    problem_.expect(step_, stored_, cases::to_reference(declared_), declared_);
  }

 private:
  static cases::RunOptions on_platform() {
    cases::RunOptions options;
    options.platform = kBenchPlatform;
    return options;
  }

  cases::RunOptions options_ = on_platform();
  cases::CaseResult result_;
  cases::Point point_;
  cases::Step step_;
  const cases::Problem& problem_;
  cases::Session session_;
  cases::TensorSet stored_;
  plumb_numerics declared_ = {};
};

// The row with the most work among those that the simulator can launch quickly.
const cases::Case* largest_row(const std::vector<cases::Case>& all, std::string_view op,
                               std::unique_ptr<cases::Problem>& problem) {
  const auto properties = device::open_device(kBenchPlatform)->properties();
  const cases::Case* chosen = nullptr;
  double most = 0;
  for (const cases::Case& which : all) {
    if (which.op->name != op || which.scenario->mode != cases::Scenario::Mode::eager) continue;
    if (!which.row.trivial.empty()) continue;
    auto candidate = which.op->make_problem(which.row, properties);
    const cases::ReferenceWork work = candidate->reference_work();
    const double size = work.bytes + work.multiply_adds + work.exps;
    if (candidate->cost() > kMostCost || size <= most) continue;
    most = size;
    chosen = &which;
    problem = std::move(candidate);
  }
  return chosen;
}

Measurement measure(const cases::Case& which, const cases::Problem& problem, RateTasks& machine) {
  const StoredCase judged(problem, which);
  const cases::ReferenceWork work = problem.reference_work();
  std::vector<std::function<void()>> tasks = machine.tasks();
  tasks.push_back([&] { judged.run_reference(); });
  std::vector<std::vector<double>> seconds = interleave(tasks, kRunsOfOp);
  const std::vector<double> times = std::move(seconds.back());
  seconds.pop_back();
  std::vector<double> medians, shares, floors;
  for (const auto& of_task : seconds) medians.push_back(summarize(of_task).median);
  for (std::size_t i = 0; i < times.size(); ++i) {
    std::vector<double> of_turn;
    for (const auto& of_task : seconds) of_turn.push_back(of_task[i]);
    floors.push_back(RateTasks::rates(of_turn).floor(work));
    shares.push_back(floors.back() / times[i]);
  }
  const Rates rates = RateTasks::rates(medians);
  const Summary share = summarize(shares);
  const double time = summarize(times).median, floor = summarize(floors).median;
  return {.name = std::string(which.op->name),
          .value = share.median,
          .spread = share.spread,
          .unit = "",
          .target = has_target(which.op->name) ? Target{.least = kTarget} : Target{},
          .note = fmt::format("{}: {:.3g} ms; bytes {:.3g} ms, operations {:.3g} ms",
                              which.row.name, 1e3 * time, 1e3 * rates.seconds_of_bytes(work),
                              1e3 * rates.seconds_of_operations(work)),
          .parts = {{"reference", time, "s"},
                    {"floor", floor, "s"},
                    {"bytes", work.bytes, "B"},
                    {"multiply_adds", work.multiply_adds, ""},
                    {"exps", work.exps, ""},
                    {"logs", work.logs, ""},
                    {"rsqrts", work.rsqrts, ""},
                    {"copy", rates.bytes, "B/s"},
                    {"multiply and add", rates.operations, "1/s"},
                    {"exp", rates.exps, "1/s"},
                    {"log", rates.logs, "1/s"},
                    {"rsqrt", rates.rsqrts, "1/s"}}};
}

}  // namespace

std::vector<Measurement> bench_ops() {
  const std::vector<cases::Case> all = cases::all_cases();
  RateTasks machine;
  std::vector<Measurement> measured;
  for (const cases::OpDefinition& op : cases::all_ops()) {
    std::unique_ptr<cases::Problem> problem;
    const cases::Case* which = largest_row(all, op.name, problem);
    if (which != nullptr) measured.push_back(measure(*which, *problem, machine));
  }
  return measured;
}

}  // namespace plumb::tools
