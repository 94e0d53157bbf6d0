// SPDX-License-Identifier: Apache-2.0
//
// Which points a case takes: a covering array, cut off where the tier's budget is spent.
#include <algorithm>
#include <limits>

#include "cases/drivers/covering.h"
#include "cases/drivers/platform_share.h"
#include "cases/drivers/run.h"
#include "cases/recorded/recorded_problem.h"
#include "cases/tensors/fill.h"

namespace plumb::cases {

namespace {

// Nanoseconds of a core that one case may spend on its points: simulated work (Problem::cost) and
// verdicts; on a real device, moving tensors and verdicts. In the default tier plumb's own kernels,
// which run with every change, get less than a plug-in's.
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
  }
  return 0;
}

// What a full-graph case takes of its steps if one point costs more than its budget: the batch
// shrinks and grows once. Cheaper rows of the op take all steps, and so do real devices.
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

// A launch that nothing is compared with does not start from zeros, which may be what is expected:
// what nobody writes would be right.
void compare_from(std::int64_t step, Point& point) {
  point.first_compared = step;
  if (step > 0 && point.poison == Poison::zero) point.poison = Poison::nan;
}

// Of a case that is too dear for a second point. All platforms that run its kernels run it, and one
// of them, `in_turn`, more of it.
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
  const bool recorded = is_recorded(which.row);
  if (recorded) levels[kFill] = levels[kDead] = 1;
  std::vector<Point> points;
  for (const std::vector<int>& choice : pairwise_points(levels, seed)) {
    points.push_back(to_point(choice, mix(seed, points.size())));
    points.back().conditions.disabled_barriers = options.disabled_barriers;
  }
  put_fills_first(points);
  const bool concurrent = which.scenario->mode == Scenario::Mode::concurrent;
  if (concurrent) let_run_side_by_side(points);
  if (options.foreign && !concurrent) put_late_first(points);
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
  // What the conditions do to the kernels the eager case of the row tries. A row that has no other
  // case is one of many that vary the shape.
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
      point.fill = Fill::exact;  // the plainest to name: there is one fill
  }
  return chosen;
}

}  // namespace plumb::cases
