// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "cases/drivers/composition.h"
#include "cases/drivers/crossed_problem.h"
#include "cases/drivers/point_text.h"
#include "cases/drivers/session.h"
#include "cases/drivers/tiled_problem.h"
#include "cases/recorded/recorded_problem.h"
#include "cases/tables/contract.h"
#include "cases/tensors/fill.h"
#include "device/filler.h"

namespace plumb::cases {

namespace {

static_assert(static_cast<std::uint8_t>(Poison::huge) == device::kHugePoison);

// Number of rows in a sample. Cheap rows get more, because some checks get sharper with many rows.
// A sample may take a quarter of the verdict budget, because a point has several verdicts.
std::int64_t affordable_rows(double verdict, std::int64_t rows, const RunOptions& options) {
  constexpr std::int64_t kMost = 1024;
  const double cost_of_row = verdict / static_cast<double>(rows);
  return std::clamp(static_cast<std::int64_t>(options.verdict_budget / 4 / cost_of_row),
                    options.least_sample, kMost);
}

// All rows of a recorded call count as live: its values say which rows were padding.
Scenario scenario_of(const Case& which) {
  Scenario scenario = *which.scenario;
  if (!is_recorded(which.row)) return scenario;
  for (Scenario::ScenarioStep& step : scenario.steps) step.live_percent = 100;
  return scenario;
}

// Replaces the fill in the failure's text: a recorded row's point has a fill that is not used.
void name_recorded_fill(CaseResult& result) {
  for (Failure& failure : result.failures) {
    for (const Fill fill : {Fill::exact, Fill::real, Fill::adversarial}) {
      const std::string words = fmt::format("{} fill", name_of(fill));
      const std::size_t at = failure.context.find(words);
      if (at != std::string::npos) failure.context.replace(at, words.size(), "recorded fill");
    }
  }
}

Scenario first_steps(Scenario scenario, const Point& point) {
  const auto steps =
      static_cast<std::size_t>(point.most_steps.value_or(std::ssize(scenario.steps)));
  if (steps < scenario.steps.size()) scenario.steps.resize(steps);
  return scenario;
}

// The same row with a quarter of its rows. null if no parameter gives their number, or none is
// less.
std::unique_ptr<Problem> smaller_problem(Case which, const RunOptions& options, bool checked) {
  if (is_recorded(which.row)) return nullptr;
  try {
    const auto properties = options.open(options.platform, {})->properties();
    const std::string name = batch_parameter(*which.op, which.row, properties);
    if (name.empty() || which.row.integer(name) < 2) return nullptr;
    std::int64_t& rows = which.row.integers.find(name)->second;
    rows = std::max<std::int64_t>(1, rows / 4);
    std::unique_ptr<Problem> smaller = make_problem(which, options, checked);
    TensorSet tensors = smaller->make_tensors();
    smaller->fill({.live = smaller->capacity()}, tensors);
    return smaller;
  } catch (const BadRow&) {  // other parameters of the row need its number of rows
    return nullptr;
  }
}

void run_point(const Case& which, const Point& point, std::uint64_t seed, const RunOptions& options,
               CaseResult& result) {
  try {
    const std::unique_ptr<Problem> problem = make_problem(which, options, point.conditions.checked);
    Session session(*problem, which, point, options, result);
    const Scenario scenario = first_steps(scenario_of(which), point);
    if (scenario.mode == Scenario::Mode::full_graph) {
      run_full_graph(session, scenario, seed, options.fresh_state_for_capture);
    } else if (scenario.mode == Scenario::Mode::concurrent) {
      run_concurrent(session, scenario, seed, options);
    } else if (scenario.mode == Scenario::Mode::queued) {
      run_queued(session, smaller_problem(which, options, point.conditions.checked).get(), scenario,
                 seed);
    } else {
      run_eager(session, scenario, seed);
    }
  } catch (const device::DeviceError& error) {
    if (error.kind() == device::ErrorKind::unsupported) throw Unsupported(error.what());
    result.failures.push_back(
        {.context = point.text(),
         .lines = {fmt::format("{}: {}", device::name_of(error.kind()), error.what())},
         .reports = {},
         .kind = std::string(device::name_of(error.kind()))});
  }
}

// True if, under every fill, replacing values by 0 would be detected for less than a tenth of the
// nonzero values: an output of zeros would nearly pass. With plumb's own declarations, every
// default case detects at least three quarters.
bool is_blind(const TensorSummary& tensor) {
  constexpr double kLeastObservable = 0.1;
  return tensor.elements_compared > 0 && tensor.zero_share < 1 &&
         tensor.most_observable < kLeastObservable;
}

// Marks a passed case untrusted if the pass proves too little.
void distrust(const Row& row, CaseResult& result) {
  const auto nothing_but_zero = [](const TensorSummary& t) {
    return t.elements_compared == 0 || t.zero_share == 1;
  };
  if (result.comparisons == 0 && row.trivial != "empty") {
    result.outcome = Outcome::untrusted;
    result.reason = "no row was compared";
  } else if (row.trivial.empty() && !result.tensors.empty() &&
             std::all_of(result.tensors.begin(), result.tensors.end(), nothing_but_zero)) {
    result.outcome = Outcome::untrusted;
    result.reason = "every expected value is zero";
  } else if (row.trivial.empty()) {
    const auto blind = std::ranges::find_if(result.tensors, is_blind);
    if (blind == result.tensors.end()) return;
    result.outcome = Outcome::untrusted;
    result.reason = fmt::format(
        "{}: the declared errors are as large as the values (zeros would pass)", blind->tensor);
  }
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed: return "passed";
    case Outcome::failed: return "failed";
    case Outcome::skipped: return "skipped";
    case Outcome::untrusted: return "untrusted";
    case Outcome::known_bug: return "known_bug";
  }
  return "?";
}

std::string_view name_of(Poison poison) {
  switch (poison) {
    case Poison::nan: return "nan";
    case Poison::huge: return "huge";
    case Poison::zero: return "zero";
  }
  return "?";
}

std::string Point::text() const {
  constexpr std::string_view kOrders[] = {"forward", "reverse", "random"};
  constexpr std::string_view kPolicies[] = {"early", "late", "interleaved"};
  return fmt::format(
      "{} fill, {} poison, {} threads, {} streams{}{}", name_of(fill), name_of(poison),
      kOrders[static_cast<int>(conditions.order)], kPolicies[static_cast<int>(conditions.policy)],
      conditions.checked ? ", checked kernels" : "", conditions.page_guards ? ", page guards" : "");
}

std::unique_ptr<Problem> make_problem(const Case& any, const RunOptions& options, bool checked) {
  const Case which = under_contract(options.implementation(options.platform, checked), any);
  const device::Properties properties = options.open(options.platform, {})->properties();
  const auto finish = [=, &options](std::unique_ptr<Problem> problem) {
    if (which.scenario->mode != Scenario::Mode::composition) return problem;
    return compose(std::move(problem), which.op->name,
                   options.implementation(options.platform, checked), options.foreign);
  };
  const auto make_problem = [=, launched = options.launched_under,
                             judged = options.judged_under](const Row& row) {
    std::unique_ptr<Problem> filled = which.op->make_problem(row, properties);
    if (launched.empty() && judged.empty()) return filled;
    const auto under = [&](const std::string& contract) {
      return which.op->make_problem(under_contract(*which.op, contract, row), properties);
    };
    return cross(std::move(filled), under(launched), under(judged));
  };
  std::unique_ptr<Problem> whole = make_problem(which.row);
  const double verdict = verdict_cost(*whole);
  if (which.op->row_count.empty() || !whole->rows_have_places() ||
      verdict <= options.verdict_budget) {
    return finish(std::move(whole));
  }
  const std::int64_t rows = which.row.integer(which.op->row_count);
  const std::int64_t sample = affordable_rows(verdict, rows, options);
  if (2 * sample >= rows) return finish(std::move(whole));
  const auto make = [=](std::int64_t count) {
    Row row = which.row;
    row.integers.find(which.op->row_count)->second = count;
    row.picked_from = rows;
    return finish(make_problem(row));
  };
  return make_tiled_problem(make, rows, sample);
}

void settle(const Row& row, CaseResult& result) {
  if (!result.failures.empty()) result.outcome = Outcome::failed;
  if (result.outcome == Outcome::passed) distrust(row, result);
  if (row.known_bug.empty()) return;
  if (result.outcome == Outcome::failed) {
    result.outcome = Outcome::known_bug;
    result.reason = row.known_bug;
  } else if (result.outcome == Outcome::passed) {
    result.outcome = Outcome::failed;
    result.failures.push_back(
        {"no step: every step passed",
         {"unexpected pass: the row is marked known_bug = \"" + row.known_bug + "\""},
         {}});
  }
}

CaseResult run_case(const Case& any, const RunOptions& options) {
  CaseResult result;
  result.id = any.id();
  result.platform = options.platform;
  const std::string unavailable = device::why_unavailable(options.platform);
  if (!unavailable.empty()) {
    result.outcome = Outcome::skipped;
    result.reason = unavailable;
    return result;
  }
  // The seed option changes conditions and values. A recorded row's inputs cannot change, so its
  // seed does not either.
  const std::uint64_t seed = seed_of(result.id) + (is_recorded(any.row) ? 0 : options.seed);
  try {
    const Case which = under_contract(options.implementation(options.platform, false), any);
    const auto properties = options.open(options.platform, {})->properties();
    if (which.row.real_only && properties.simulated) {
      throw Unsupported("this row is for real devices: it takes too long on the simulator");
    }
    const std::unique_ptr<Problem> problem = which.op->make_problem(which.row, properties);
    for (const Point& point : choose_points(which, *problem, options)) {
      ++result.points;
      run_point(which, point, seed, options, result);
      if (result.failures.empty()) continue;
      result.failed_at = spec_of(point);
      break;  // one failing point is enough for the report
    }
    if (is_recorded(which.row)) name_recorded_fill(result);
    settle(which.row, result);
  } catch (const Unsupported& reason) {
    result.outcome = Outcome::skipped;
    result.reason = reason.what();
    result.lacked_memory = dynamic_cast<const NoMemoryLeft*>(&reason) != nullptr;
  }
  return result;
}

reference::Numerics to_reference(const plumb_numerics& declared) {
  const auto format = [](plumb_format f) {
    switch (f) {
      case PLUMB_F64: return reference::Format::f64;
      case PLUMB_TF32: return reference::Format::tf32;
      case PLUMB_TF32_TRUNCATED: return reference::Format::tf32_truncated;
      case PLUMB_BF16: return reference::Format::bf16;
      default: return reference::Format::f32;
    }
  };
  reference::Numerics numerics;
  numerics.product = format(declared.product);
  numerics.accumulator = format(declared.accumulator);
  numerics.chains = declared.chains;
  numerics.probability = format(declared.probability);
  numerics.function_ulp = static_cast<double>(declared.function_ulp);
  numerics.unit = static_cast<reference::SumUnit>(declared.sum_unit);
  numerics.step = declared.sum_step;
  if (declared.score != PLUMB_F64) numerics.score = format(declared.score);
  return numerics;
}

}  // namespace plumb::cases
