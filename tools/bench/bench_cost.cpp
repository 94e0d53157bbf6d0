// SPDX-License-Identifier: Apache-2.0
//
// Measures whether one unit of Problem::cost takes the same time for every op. The cost decides how
// often a tier can afford a case, so an op that understates its cost takes time from the others.
#include <fmt/format.h>

#include <algorithm>

#include "cases/drivers/session.h"
#include "cases/tensors/fill.h"
#include "tools/bench/bench.h"

namespace plumb::tools {

namespace {

// One op at one shape on its own device, ready to be launched.
class CostBed {
 public:
  CostBed(const cases::Problem& problem, const cases::Case& which, bool checked)
      : point_(point_of(checked)), session_(problem, which, point_, options_, result_) {
    buffers_ = session_.make_buffers();
    session_.set_inputs({.seed = cases::seed_of(which.id()), .live = problem.capacity()}, buffers_);
  }
  // Seconds of one launch with new host state, so that the launch plans too.
  double launch() {
    constexpr double kLongEnough = 2e-3;
    double spent = 0;
    int launches = 0;
    while (spent < kLongEnough) {
      buffers_.state = session_.problem().make_state(buffers_.addresses);
      session_.poison(buffers_, cases::Poison::zero);  // resets in-place buffers
      session_.device().synchronize(session_.stream());
      const double start = cpu_seconds();
      session_.launch(buffers_);
      session_.device().synchronize(session_.stream());
      spent += cpu_seconds() - start;
      ++launches;
    }
    return spent / launches;
  }

 private:
  static cases::Point point_of(bool checked) {
    cases::Point point;
    point.conditions.checked = checked;
    return point;
  }

  static cases::RunOptions options_of_platform() {
    cases::RunOptions options;
    options.platform = kBenchPlatform;
    return options;
  }

  cases::RunOptions options_ = options_of_platform();
  cases::CaseResult result_;
  cases::Point point_;
  cases::Session session_;
  cases::Buffers buffers_;
};

// Seconds per launch of one row.
struct RowTimes {
  std::string row;
  double cost = 0, declared_factor = 1;
  std::vector<double> plain, checked;
  double nanoseconds_per_unit() const { return 1e9 * summarize(plain).median / cost; }
};

RowTimes time_row(const cases::Problem& problem, const cases::Case& which) {
  constexpr int kRepetitions = 5;
  RowTimes times{which.row.name, problem.cost(), problem.checked_factor(), {}, {}};
  CostBed plain(problem, which, false), checked(problem, which, true);
  for (int repetition = -1; repetition < kRepetitions; ++repetition) {
    const double of_plain = plain.launch(), of_checked = checked.launch();
    if (repetition < 0) continue;  // warm-up
    times.plain.push_back(of_plain);
    times.checked.push_back(of_checked);
  }
  return times;
}

std::vector<RowTimes> time_rows(const std::vector<cases::Case>& all, std::string_view op) {
  const auto properties = device::open_device(kBenchPlatform)->properties();
  std::vector<RowTimes> rows;
  for (const cases::Case& which : all) {
    if (which.op->name != op || which.scenario->mode != cases::Scenario::Mode::eager) continue;
    const auto problem = which.op->make_problem(which.row, properties);
    if (problem->cost() < 1) continue;  // the row launches nothing
    rows.push_back(time_row(*problem, which));
  }
  return rows;
}

Measurement unit_of(const std::string& op, std::vector<RowTimes>& rows) {
  std::sort(rows.begin(), rows.end(), [](const RowTimes& a, const RowTimes& b) {
    return a.nanoseconds_per_unit() < b.nanoseconds_per_unit();
  });
  std::vector<double> units, spreads;
  std::vector<Part> parts;
  for (const RowTimes& row : rows) {
    units.push_back(row.nanoseconds_per_unit());
    spreads.push_back(summarize(row.plain).spread);
    parts.push_back({row.row, row.nanoseconds_per_unit(), "ns per unit"});
    parts.push_back({row.row + " cost", row.cost, "units"});
  }
  const std::string note = fmt::format("{:.2f} {} to {:.2f} {}", units.front(), rows.front().row,
                                       units.back(), rows.back().row);
  return {op,   summarize(units).median, summarize(spreads).median, "ns per unit", {0.5, 2}, note,
          parts};
}

Measurement checked_factor(const std::string& op, const std::vector<RowTimes>& rows) {
  std::vector<double> factors;
  for (const RowTimes& row : rows) {
    factors.push_back(summarize(row.checked).median / summarize(row.plain).median);
  }
  const double median = summarize(factors).median, declared = rows.front().declared_factor;
  const auto [least, most] = std::minmax_element(factors.begin(), factors.end());
  return {.name = op + ", checked",
          .value = median,
          .spread = summarize(rows.front().checked).spread,
          .unit = "times plain",
          .target = {.least = declared / 2, .most = declared * 2},
          .note = fmt::format("{:.1f} to {:.1f}, declared {:g}", *least, *most, declared)};
}

}  // namespace

std::vector<Measurement> bench_cost() {
  const Selected selected = smoke_cases(kBenchPlatform);
  std::vector<Measurement> units, factors;
  for (const cases::OpDefinition& op : cases::all_ops()) {
    std::vector<RowTimes> rows = time_rows(selected.cases, op.name);
    if (rows.empty()) continue;
    units.push_back(unit_of(std::string(op.name), rows));
    factors.push_back(checked_factor(std::string(op.name), rows));
  }
  units.insert(units.end(), factors.begin(), factors.end());
  return units;
}

}  // namespace plumb::tools
