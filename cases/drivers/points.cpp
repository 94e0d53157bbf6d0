// SPDX-License-Identifier: Apache-2.0
//
// Chooses the points (combinations of conditions) under which a case runs: a covering array, cut
// off when the tier's budget is spent.
#include <algorithm>
#include <limits>

#include "cases/drivers/covering.h"
#include "cases/drivers/platform_share.h"
#include "cases/drivers/run.h"
#include "cases/recorded/recorded_problem.h"
#include "cases/tensors/fill.h"
#include "cases/tensors/shapes_only.h"

namespace plumb::cases {

namespace {

// Nanoseconds of one core that a case may spend on its points. On the simulator: simulated work
// (Problem::cost) and verdicts. On a real device: moving tensors, and verdicts. In the default tier
// plumb's own kernels get less than a plug-in's, because they run with every change.
double budget_of(const RunOptions& options, bool simulated) {
  switch (options.tier) {
    case Tier::smoke: return simulated ? 1e7 : 1e8;
    case Tier::standard: return !simulated ? 1e9 : options.foreign ? 9e7 : 5e7;
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
    case Scenario::Mode::queued: return 4 + 2 * steps;
  }
  return 0;
}

// How many steps a full_graph case runs on a simulated platform in the default tier (plumb's own
// kernels: also in the smoke tier) if one point costs more than the case's budget: enough for the
// batch to shrink and grow once. Cheaper cases run all steps.
constexpr std::int64_t kStepsOfDear = 3;

constexpr std::int64_t kNoStep = std::numeric_limits<std::int64_t>::max();

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

// For concurrent and queued cases: interleave the work of the streams, and use plain kernels. Eager
// cases already run the checked kernels, at a fraction of the cost.
void let_run_side_by_side(std::vector<Point>& points, bool simulated) {
  for (Point& point : points) {
    if (simulated) point.conditions.policy = device::Policy::interleaved;
    point.conditions.checked = false;
  }
}

// Share of a tier's budget. Composition, concurrent and queued cases need few points: a fused op's
// eager case already varies the conditions, and runners and queued calls already differ in inputs.
double share_of_budget(Scenario::Mode mode) {
  switch (mode) {
    case Scenario::Mode::composition: return 1.0 / 4;
    case Scenario::Mode::concurrent:
    case Scenario::Mode::queued: return 1.0 / 16;
    default: return 1;
  }
}

// Nanoseconds that a launch on a real device costs without the verdict: the bytes of all tensors
// are filled, copied, read back and compared a few times each, plus the waiting calls.
double moving_cost(const Problem& problem) {
  constexpr double kPerByte = 2, kCalls = 2e6;
  double bytes = 0;
  const TensorSet tensors = problem.make_tensors();
  for (const HostTensor& tensor : tensors.all())
    bytes += static_cast<double>(tensor.bytes().size());
  return kCalls + kPerByte * bytes;
}

// Moves one point of each fill to the front, each with another thread order. Even a budget of three
// points then tries every fill, and finds results that depend on the thread order.
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

// Puts a point with late streams first. Only late streams show a launcher that does its work at
// once instead of enqueueing it, so the smallest choice must have them.
void put_late_first(std::vector<Point>& points) {
  const auto found = std::find_if(points.begin(), points.end(), [&](const Point& p) {
    return p.conditions.policy == device::Policy::late && p.fill == points.front().fill;
  });
  if (found != points.end()) std::iter_swap(points.begin(), found);
}

// Keeps this platform's share of the points. The first points, one of each fill, run on every
// platform.
void keep_share(std::vector<Point>& points, const PlatformShare& share) {
  std::vector<Point> kept;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i < kFillCount || share.has(i)) kept.push_back(points[i]);
  }
  points = std::move(kept);
}

// Sets the first step whose launch is repeated and compared. Earlier launches must not start from
// zero poison: zero may be the expected value, and an element that is never written would pass.
void compare_from(std::int64_t step, Point& point) {
  point.first_compared = step;
  if (step > 0 && point.poison == Poison::zero) point.poison = Poison::nan;
}

// Shortens the only point of a case that costs more than its budget. All platforms that run the
// same kernels (platform_share.h) run the point and judge it by the reference. Only one of them
// (`in_turn`) launches again and compares the bits: in a full_graph case in the last step, which
// the others do not run; in other cases in every step.
void shorten(bool replayed, bool in_turn, Point& point) {
  if (replayed) {
    point.most_steps = in_turn ? kStepsOfDear : kStepsOfDear - 1;
    compare_from(in_turn ? kStepsOfDear - 1 : kNoStep, point);
  } else if (!in_turn) {
    compare_from(kNoStep, point);
  }
}

}  // namespace

double verdict_cost(const Problem& problem) {
  constexpr double kPerElement = 120;
  double elements = 0;
  const ShapesOnly shapes;
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
  // A real device has its own thread order and stream policy, and no checked kernels.
  if (!simulated) levels[kOrder] = levels[kPolicy] = levels[kChecked] = levels[kPages] = 1;
  if (options.foreign) levels[kOrder] = levels[kChecked] = 1;
  const bool recorded = is_recorded(which.row);
  if (recorded) levels[kFill] = levels[kDead] = 1;
  std::vector<Point> points;
  for (const std::vector<int>& choice : pairwise_points(levels, seed)) {
    points.push_back(to_point(choice, mix(seed, points.size())));
    points.back().conditions.disabled_barriers = options.disabled_barriers;
  }
  put_fills_first(points);
  const bool side_by_side = which.scenario->mode == Scenario::Mode::concurrent ||
                            which.scenario->mode == Scenario::Mode::queued;
  if (side_by_side) let_run_side_by_side(points, simulated);
  if (options.foreign && !side_by_side) put_late_first(points);
  const double budget = budget_of(options, simulated) * share_of_budget(which.scenario->mode);
  const double launches =
      (simulated ? problem.cost() : moving_cost(problem)) * launches_of(*which.scenario);
  const double verdicts = std::min(verdict_cost(problem), options.verdict_budget) *
                          static_cast<double>(which.scenario->steps.size());
  const double cost = launches + verdicts;
  const double checked_cost = launches * problem.checked_factor() + verdicts;
  const bool standard = simulated && options.tier == Tier::standard;
  const bool thinned = simulated && options.tier != Tier::full && !options.foreign;
  const bool replayed = (standard || thinned) && which.scenario->mode == Scenario::Mode::full_graph;
  const PlatformShare share = thinned ? share_of(options.platform) : PlatformShare{};
  if (cost > budget && thinned) {
    shorten(replayed, share.has(seed), points.front());
  } else if (cost > budget && replayed) {
    points.front().most_steps = kStepsOfDear;
  }
  // The row's eager case already varies the conditions, so its graph case needs only the fills. A
  // row with only an eager case (eager_only) is one of many rows that vary the shape: the fills are
  // enough.
  const bool fills_only = thinned && (replayed || which.row.eager_only);
  const double behind_fills = fills_only ? 0 : replayed ? budget / 4 : budget;
  double spent = 0;
  std::vector<Point> chosen;
  for (Point& point : points) {
    if (thinned && !chosen.empty()) compare_from(kNoStep, point);
    if (checked_cost > budget / 4) point.conditions.checked = false;
    spent += point.conditions.checked ? checked_cost : cost;
    if (!chosen.empty() && spent > (chosen.size() < kFillCount ? budget : behind_fills)) break;
    chosen.push_back(point);
  }
  keep_share(chosen, share);
  if (recorded) {
    for (Point& point : chosen)
      point.fill = Fill::exact;  // not used for a recorded row; --point leaves out exact
  }
  return chosen;
}

}  // namespace plumb::cases
