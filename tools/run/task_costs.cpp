// SPDX-License-Identifier: Apache-2.0
#include "tools/run/task_costs.h"

#include <map>
#include <memory>

#include "cases/drivers/run.h"
#include "device/device.h"

namespace plumb::tools {

namespace {

constexpr double kLaunches = 2e7;     // ns per point, for any shape
constexpr double kDecodeSteps = 1e9;  // ns per case of decode steps

double cost_of(const cases::Case& which, const cases::RunOptions& options) {
  const std::unique_ptr<cases::Problem> problem =
      which.op->make_problem(which.row, device::open_device(options.platform)->properties());
  const auto points = cases::choose_points(which, *problem, options).size();
  return static_cast<double>(points) * (kLaunches + cases::verdict_cost(*problem));
}

}  // namespace

std::vector<double> costs_of(const std::vector<Task>& tasks, cases::Tier tier, std::uint64_t seed) {
  std::map<const cases::AnyCase*, double> known;
  std::vector<double> costs;
  for (const Task& task : tasks) {
    const auto [at, is_new] = known.try_emplace(task.which, kDecodeSteps);
    const cases::Case* const which = task.which->of_op();
    if (is_new && which != nullptr) {
      at->second = cost_of(*which, {.platform = "sim-sm90", .tier = tier, .seed = seed});
    }
    costs.push_back(at->second);
  }
  return costs;
}

}  // namespace plumb::tools
