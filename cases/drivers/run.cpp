// SPDX-License-Identifier: Apache-2.0
#include "cases/drivers/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "cases/drivers/composition.h"
#include "cases/drivers/covering.h"
#include "cases/drivers/crossed_problem.h"
#include "cases/drivers/point_text.h"
#include "cases/drivers/session.h"
#include "cases/drivers/tiled_problem.h"
#include "cases/tables/contract.h"
#include "cases/tables/platform_share.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

// Nanoseconds of a core that one case may spend on its points: simulated work (Problem::cost) and
// verdicts; on a real device, moving tensors and verdicts.
double budget_of(Tier tier, bool simulated) {
  switch (tier) {
    case Tier::smoke: return simulated ? 1e7 : 1e8;
    case Tier::standard: return simulated ? 9e7 : 1e9;
    case Tier::full: return simulated ? 2e10 : 4e9;
  }
  return 0;
}

double launches_of(const Scenario& scenario) {
  const double steps = static_cast<double>(scenario.steps.size());
  switch (scenario.mode) {
    case Scenario::Mode::eager: return 2 * steps;
    case Scenario::Mode::full_graph: return 1 + 2 * steps;
    case Scenario::Mode::composition: return 4 * steps;  // fused and plain
    case Scenario::Mode::concurrent: return scenario.runners * (1 + 2 * steps);
  }
  return 0;
}

// What a full-graph case takes of its steps if one point costs more than its budget: the batch
// shrinks and grows once. Cheaper rows of the op take all steps, and so do real devices.
constexpr std::int64_t kStepsOfDear = 3;

constexpr std::size_t kFillCount = 3;
enum Factor { kOrder, kPolicy, kPoison, kFill, kChecked, kPages, kDead, kFactorCount };
constexpr int kLevels[kFactorCount] = {3, 2, 3, 3, 2, 2, 5};

Point to_point(const std::vector<int>& levels, std::uint64_t seed) {
  constexpr device::Order kOrders[] = {device::Order::forward, device::Order::reverse,
                                       device::Order::random};
  constexpr Poison kPoisons[] = {Poison::nan, Poison::huge, Poison::zero};
  constexpr Fill kFills[] = {Fill::real, Fill::exact, Fill::adversarial};
  Point point;
  point.conditions.order = kOrders[levels[kOrder]];
  point.conditions.policy = levels[kPolicy] ? device::Policy::late : device::Policy::early;
  point.conditions.checked = levels[kChecked] != 0;
  point.conditions.page_guards = levels[kPages] != 0;
  point.conditions.seed = seed;
  point.poison = kPoisons[levels[kPoison]];
  point.fill = kFills[levels[kFill]];
  point.first_dead_rows = levels[kDead];
  return point;
}

// Of a concurrent case: the streams' work interleaves. What checked kernels find they find in the
// other cases, at a fraction of the price.
void let_run_side_by_side(std::vector<Point>& points) {
  for (Point& point : points) {
    point.conditions.policy = device::Policy::interleaved;
    point.conditions.checked = false;
  }
}

// Share of a tier's budget. What the conditions do to a fused op its eager case tries, and
// concurrent cases differ in their runners' inputs already: these need few points.
double share_of_budget(Scenario::Mode mode) {
  switch (mode) {
    case Scenario::Mode::composition: return 1.0 / 4;
    case Scenario::Mode::concurrent: return 1.0 / 16;
    default: return 1;
  }
}

// Nanoseconds of a launch on a real device but for the verdict: inputs are filled, copied, and with
// the outputs read back and compared, a few times each; and the calls that wait for all that.
double moving_cost(const Problem& problem) {
  constexpr double kPerByte = 2, kCalls = 2e6;
  double bytes = 0;
  const TensorSet tensors = problem.make_tensors();
  for (const HostTensor& tensor : tensors.all())
    bytes += static_cast<double>(tensor.bytes().size());
  return kCalls + kPerByte * bytes;
}

// Rows of a sample. More of the cheap ones, for the checks that many rows make sharper; a quarter
// of what a verdict may take, for there are several a point.
std::int64_t affordable_rows(double verdict, std::int64_t rows, const RunOptions& options) {
  constexpr std::int64_t kMost = 1024;
  const double cost_of_row = verdict / static_cast<double>(rows);
  return std::clamp(static_cast<std::int64_t>(options.verdict_budget / 4 / cost_of_row),
                    options.least_sample, kMost);
}

// One point of each fill before the rest, each with a thread order of its own: the thinnest choice
// is still a useful one, and sees work that depends on the order.
void put_fills_first(std::vector<Point>& points) {
  auto place = points.begin();
  for (const Fill fill : {Fill::real, Fill::exact, Fill::adversarial}) {
    const auto has_new_order = [&](const Point& p) {
      return std::none_of(points.begin(), place, [&](const Point& earlier) {
        return earlier.conditions.order == p.conditions.order;
      });
    };
    auto found = std::find_if(place, points.end(),
                              [&](const Point& p) { return p.fill == fill && has_new_order(p); });
    if (found == points.end()) {
      found = std::find_if(place, points.end(), [&](const Point& p) { return p.fill == fill; });
    }
    if (found != points.end()) std::iter_swap(place++, found);
  }
}

// A launcher that does its work at once, instead of enqueueing it, shows under late streams only:
// the thinnest choice tries them.
void put_late_first(std::vector<Point>& points) {
  const auto found = std::find_if(points.begin(), points.end(), [&](const Point& p) {
    return p.conditions.policy == device::Policy::late && p.fill == points.front().fill;
  });
  if (found != points.end()) std::iter_swap(points.begin(), found);
}

// Of the points: all platforms run the first ones, one of each fill.
void keep_share(std::vector<Point>& points, const PlatformShare& share) {
  std::vector<Point> kept;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i < kFillCount || share.has(i)) kept.push_back(points[i]);
  }
  points = std::move(kept);
}

Scenario first_steps(Scenario scenario, const Point& point) {
  const auto steps =
      static_cast<std::size_t>(point.most_steps.value_or(std::ssize(scenario.steps)));
  if (steps < scenario.steps.size()) scenario.steps.resize(steps);
  return scenario;
}

void run_point(const Case& which, const Point& point, std::uint64_t seed, const RunOptions& options,
               CaseResult& result) {
  try {
    const std::unique_ptr<Problem> problem = make_problem(which, options, point.conditions.checked);
    Session session(*problem, which, point, options, result);
    const Scenario scenario = first_steps(*which.scenario, point);
    if (scenario.mode == Scenario::Mode::full_graph) {
      run_full_graph(session, scenario, seed, options.fresh_state_for_capture);
    } else if (scenario.mode == Scenario::Mode::concurrent) {
      run_concurrent(session, scenario, seed, options);
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

// Under every fill at most a tenth of the nonzero values exceed their bound, so that zeros would
// nearly pass. With plumb's own declarations three quarters and more do, in each default case.
bool is_blind(const TensorSummary& tensor) {
  constexpr double kLeastObservable = 0.1;
  return tensor.elements_compared > 0 && tensor.zero_share < 1 &&
         tensor.most_observable < kLeastObservable;
}

// A pass that proves too little is not a pass.
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

double verdict_cost(const Problem& problem) {
  constexpr double kPerElement = 120;
  double elements = 0;
  const TensorSet tensors = problem.make_tensors();
  for (const HostTensor& tensor : tensors.all()) {
    if (tensor.spec().role != Role::input) elements += static_cast<double>(tensor.elements());
  }
  return problem.reference_cost() + kPerElement * elements;
}

std::vector<Point> choose_points(const Case& which, const Problem& problem,
                                 const RunOptions& options) {
  if (options.point) return {*options.point};
  const std::uint64_t seed = seed_of(which.id()) + options.seed;
  std::vector<int> levels(std::begin(kLevels), std::end(kLevels));
  const bool simulated = options.open(options.platform, {})->properties().simulated;
  // A real device has orders and policies of its own, and no checked kernels.
  if (!simulated) levels[kOrder] = levels[kPolicy] = levels[kChecked] = levels[kPages] = 1;
  if (options.foreign) levels[kOrder] = levels[kChecked] = 1;
  std::vector<Point> points;
  for (const std::vector<int>& choice : pairwise_points(levels, seed)) {
    points.push_back(to_point(choice, mix(seed, points.size())));
    points.back().conditions.disabled_barriers = options.disabled_barriers;
  }
  put_fills_first(points);
  const bool concurrent = which.scenario->mode == Scenario::Mode::concurrent;
  if (concurrent) let_run_side_by_side(points);
  if (options.foreign && !concurrent) put_late_first(points);
  const double budget = budget_of(options.tier, simulated) * share_of_budget(which.scenario->mode);
  const double launches =
      (simulated ? problem.cost() : moving_cost(problem)) * launches_of(*which.scenario);
  const double verdicts = std::min(verdict_cost(problem), options.verdict_budget) *
                          static_cast<double>(which.scenario->steps.size());
  const double cost = launches + verdicts;
  const double checked_cost = launches * problem.checked_factor() + verdicts;
  const bool replayed = simulated && options.tier == Tier::standard &&
                        which.scenario->mode == Scenario::Mode::full_graph;
  if (replayed && cost > budget) points.front().most_steps = kStepsOfDear;
  // What the conditions do to the kernels the eager case of the row tries, with the whole budget.
  const double behind_fills = replayed ? budget / 4 : budget;
  double spent = 0;
  std::vector<Point> chosen;
  for (Point& point : points) {
    if (checked_cost > budget / 4) point.conditions.checked = false;
    spent += point.conditions.checked ? checked_cost : cost;
    if (!chosen.empty() && spent > (chosen.size() < kFillCount ? budget : behind_fills)) break;
    chosen.push_back(point);
  }
  if (simulated && !options.foreign && options.tier == Tier::standard) {
    keep_share(chosen, share_of(options.platform));
  }
  return chosen;
}

std::unique_ptr<Problem> make_problem(const Case& any, const RunOptions& options, bool checked) {
  const Case which = under_contract(options.implementation(options.platform, checked), any);
  const device::Properties properties = options.open(options.platform, {})->properties();
  const auto finish = [=, &options](std::unique_ptr<Problem> problem) {
    if (which.scenario->mode != Scenario::Mode::composition) return problem;
    return compose(std::move(problem), which.op->name,
                   options.implementation(options.platform, checked));
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
    result.failures.push_back({"known bug", {"passes, but is listed as " + row.known_bug}, {}});
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
  const std::uint64_t seed = seed_of(result.id) + options.seed;
  try {
    const Case which = under_contract(options.implementation(options.platform, false), any);
    const auto properties = options.open(options.platform, {})->properties();
    if (which.row.real_only && properties.simulated) {
      throw Unsupported("a row for real devices: the simulator cannot afford it");
    }
    const std::unique_ptr<Problem> problem = which.op->make_problem(which.row, properties);
    for (const Point& point : choose_points(which, *problem, options)) {
      ++result.points;
      run_point(which, point, seed, options, result);
      if (result.failures.empty()) continue;
      result.failed_at = spec_of(point);
      break;  // one failing point says what is wrong
    }
    settle(which.row, result);
  } catch (const Unsupported& reason) {
    result.outcome = Outcome::skipped;
    result.reason = reason.what();
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
  return numerics;
}

}  // namespace plumb::cases
