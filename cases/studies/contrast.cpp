// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/contrast.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <tuple>

#include "cases/drivers/point_text.h"
#include "cases/drivers/verdict_listener.h"
#include "cases/judge/unwritten.h"
#include "cases/studies/right_under.h"
#include "cases/studies/row_contrast.h"

namespace plumb::cases {

namespace {

// Limit for one run (by Problem::cost), and for all runs together if they are short.
constexpr double kMostNanosecondsOfContrast = 2e9;
// If runs are long, all runs together may take as long as 20 runs, up to 20 s. Measured times count
// too, because Problem::cost does not model Python kernels and real devices.
constexpr double kContrastTimeInRuns = 20, kMostNanosecondsOfLongContrast = 2e10;
constexpr int kMostContrastRuns = 64;
// One set of inputs may have too few rows to find a separating property.
constexpr int kOtherInputs = 8;
// With so many runs, a case that fails at random is mistaken for one that depends on a condition,
// or on the stream policy, with a probability below 1e-3.
constexpr int kLeastFailingRuns = 8, kLeastPassingRuns = 6;
constexpr int kRunsOfCause = 5;
constexpr std::int64_t kNoSecondLaunch = std::numeric_limits<std::int64_t>::max();

enum class ContrastVerdict { passes, fails, cannot_say };

struct ContrastRun {
  ContrastVerdict verdict = ContrastVerdict::cannot_say;
  bool wrote_nothing = false;
};

// A condition that is varied, and the noun for it in reports.
struct ContrastCondition {
  std::string_view part;  // part of a point (point_text.h)
  std::string_view noun;
};
constexpr std::array kConditions{ContrastCondition{"policy", "streams"},
                                 ContrastCondition{"poison", "poison"},
                                 ContrastCondition{"fill", "fill"}};

// True if the launch left every promised element of every output as it was before. At least one of
// these outputs must have held poison.
bool wrote_nothing(const Problem& problem, const CaseEvidence& evidence) {
  std::int64_t poisoned = 0;
  for (const HostTensor& tensor : evidence.tensors.all()) {
    const TensorSpec& spec = tensor.spec();
    if (spec.role != Role::output) continue;
    const std::byte* start =
        spec.starts_as.empty() ? nullptr : evidence.tensors.at(spec.starts_as).bytes().data();
    const RowMask rows = problem.promised_rows_by_inputs(evidence.step, evidence.tensors, spec);
    const ColumnRanges columns = problem.promised_columns(evidence.tensors, spec);
    const std::size_t size = size_of(spec.dtype);
    for (std::int64_t row = 0; row < tensor.rows(); ++row) {
      if (!is_promised(rows, row)) continue;
      const ColumnRange range = columns_of(columns, tensor, row);
      const auto begin = static_cast<std::size_t>(tensor.row_offset(row) + range.begin) * size;
      const auto end = static_cast<std::size_t>(tensor.row_offset(row) + range.end) * size;
      for (std::size_t i = begin; i < end; ++i) {
        const std::byte before = start ? start[i] : static_cast<std::byte>(evidence.poison);
        if (tensor.bytes()[i] != before) return false;
        poisoned += start == nullptr;
      }
    }
  }
  return poisoned > 0;
}

class Contrasted {
 public:
  Contrasted(const Case& which, const CaseResult& result, const RunOptions& options)
      : which_(which),
        result_(result),
        options_(options),
        simulated_(options.platform.starts_with("sim-")),
        base_(point_from(result.failed_at)),
        problem_(make_problem(which, options, false)) {
    const double launches = static_cast<double>(result.launches) /
                            static_cast<double>(std::max<std::int64_t>(result.points, 1));
    modelled_run_ = launches * (problem_->cost() + verdict_cost(*problem_));
  }

  Contrast find() {
    if (!fails_again()) return found_;
    find_unwritten();
    if (!found_.cause.empty()) return found_;
    int failing = 0, passing = 0;
    for (int i = 0; i <= kOtherInputs; ++i) {
      const ContrastVerdict verdict = at(base_, i).verdict;
      failing += verdict == ContrastVerdict::fails;
      passing += verdict == ContrastVerdict::passes;
    }
    if (failing >= kLeastFailingRuns && passing == 0) {
      for (const ContrastCondition& one : kConditions) compare(one);
    }
    const std::string rows = rows_.text();
    if (!rows.empty()) {
      found_.lines.push_back(fmt::format("with {} fill, {}", part_of(base_, "fill"), rows));
    }
    return found_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  double nanoseconds() const {
    return std::chrono::duration<double, std::nano>(Clock::now() - start_).count();
  }

  bool may_run() const {
    if (runs_.empty()) return modelled_run_ <= kMostNanosecondsOfContrast;
    if (std::ssize(runs_) >= kMostContrastRuns) return false;
    const double spent = std::max(nanoseconds(), modelled_run_ * static_cast<double>(runs_.size()));
    const double run = std::max(first_run_, modelled_run_);
    return spent < std::clamp(kContrastTimeInRuns * run, kMostNanosecondsOfContrast,
                              kMostNanosecondsOfLongContrast);
  }

  // Runs the case at a point. `inputs`: number of the input set; 0 is the one of the failure.
  // Results are cached.
  ContrastRun at(const Point& point, int inputs = 0) {
    const auto key = std::tuple(spec_of(point), point.first_compared, inputs);
    if (const auto found = runs_.find(key); found != runs_.end()) return found->second;
    if (!may_run()) return {};
    const ContrastRun run = run_at(point, inputs);
    if (runs_.empty()) first_run_ = nanoseconds();
    return runs_[key] = run;
  }

  ContrastRun run_at(const Point& point, int inputs) {
    RunOptions options = options_;
    options.point = point;
    options.seed += static_cast<std::uint64_t>(inputs);
    options.on_real_launch = {};
    // Rows are collected at the base point only: under another condition they may pass.
    const bool is_base = spec_of(point) == spec_of(base_);
    bool works = false;  // true if at least one step was right
    const VerdictListener listener([&](const Problem& problem, const Launched& launched,
                                       const std::vector<TensorReport>& reports) {
      if (is_base) rows_.add(problem, launched, reports);
      // Over zero poison a kernel that writes nothing may look right.
      works |= point.poison != Poison::zero && launched.step.live > 0 &&
               std::ranges::all_of(reports, &TensorReport::passed);
    });
    try {
      const CaseResult result = run_case(which_, options);
      if (result.outcome == Outcome::passed) return {ContrastVerdict::passes};
      if (fails_by_values(result)) {
        const bool nothing = !works && result.evidence && result.evidence->poison == point.poison &&
                             wrote_nothing(*problem_, *result.evidence);
        return {ContrastVerdict::fails, nothing};
      }
    } catch (const std::exception&) {  // other inputs make the row or point impossible
    }
    return {};
  }

  // True if the case fails at `base_` with this poison and without a second launch. (The second
  // launch starts from other poison, and would hide with which poison the case fails.)
  bool fails_without_second_launch(Poison poison) {
    base_.poison = poison;
    base_.first_compared = kNoSecondLaunch;
    rows_ = {};
    return at(base_).verdict == ContrastVerdict::fails;
  }

  // Finds a point at which the case fails again, and sets `base_` to it.
  bool fails_again() {
    const Point failed_at = base_;
    if (fails_without_second_launch(failed_at.poison)) return true;
    const Poison judged = result_.evidence ? result_.evidence->poison : failed_at.poison;
    if (judged != failed_at.poison && fails_without_second_launch(judged)) return true;
    base_ = failed_at;
    rows_ = {};
    const ContrastVerdict verdict = at(base_).verdict;
    if (verdict == ContrastVerdict::passes) {
      found_.lines.emplace_back("fails intermittently: a second run with the same inputs passed");
    }
    return verdict == ContrastVerdict::fails;
  }

  Point with(const ContrastCondition& condition, const std::string& value) const {
    Point point = base_;
    set_part(point, condition.part, value);
    return point;
  }

  // True if runs with each of the first `runs` input sets have this verdict.
  bool always(const Point& point, ContrastVerdict verdict, int runs) {
    for (int i = 0; i < runs; ++i) {
      if (at(point, i).verdict != verdict) return false;
    }
    return true;
  }
  bool always_writes_nothing(const Point& point) {
    for (int i = 0; i < kRunsOfCause; ++i) {
      if (!at(point, i).wrote_nothing) return false;
    }
    return true;
  }

  // Tries three kinds of poison. A result may equal one poison by chance, and adding to NaN or to a
  // huge number leaves it unchanged; adding to zero shows.
  bool writes_nothing_over_any_poison(Point point) {
    constexpr std::array kPoisonsInTurn{Poison::zero, Poison::nan, Poison::huge};
    for (int i = 0; i < kRunsOfCause; ++i) {
      point.poison = kPoisonsInTurn[static_cast<std::size_t>(i) % kPoisonsInTurn.size()];
      if (!at(point, i).wrote_nothing) return false;
    }
    return true;
  }

  void find_unwritten() {
    if (base_.first_compared != kNoSecondLaunch || !at(base_).wrote_nothing) return;
    Point early = base_;
    early.conditions.policy = device::Policy::early;
    const bool is_late = simulated_ && base_.conditions.policy != device::Policy::early;
    if (is_late && at(early).verdict == ContrastVerdict::passes) {
      if (!always_writes_nothing(base_)) return;
      if (!always(early, ContrastVerdict::passes, kRunsOfCause)) return;
      found_.cause = fmt::format(
          "the kernel works before the stream reaches its launch, or in another stream: outputs "
          "keep plumb's poison under {} streams, and are right under early streams",
          part_of(base_, "policy"));
    } else if (writes_nothing_over_any_poison(early)) {
      const bool replayed = which_.scenario->mode == Scenario::Mode::full_graph;
      found_.cause = fmt::format(
          "the {} wrote nothing: each promised element of the outputs still holds its value "
          "from before the launch",
          replayed ? "replay" : "kernel");
    }
  }

  // Reports values of a condition under which the case always passes, while it always fails under
  // its own value.
  void compare(const ContrastCondition& condition) {
    const std::string own = part_of(base_, condition.part);
    const std::vector<std::string> values = values_of(condition);
    std::vector<std::string> passing, others;
    for (const std::string& value : values) {
      if (value == own) continue;
      const Point point = with(condition, value);
      if (at(point).verdict == ContrastVerdict::fails) others.push_back(value);
      if (always(point, ContrastVerdict::passes, kLeastPassingRuns)) passing.push_back(value);
    }
    if (passing.empty()) return;
    std::vector<std::string> failing{own};
    for (const std::string& value : others) {
      const Point point = with(condition, value);
      if (always(point, ContrastVerdict::fails, kLeastPassingRuns)) failing.push_back(value);
    }
    // In one order, so that cases that fail alike have the same line.
    std::ranges::sort(failing, {}, [&](const std::string& value) {
      return std::ranges::find(values, value) - values.begin();
    });
    found_.lines.push_back(fmt::format("fails with {} {}, passes with {} {}",
                                       fmt::join(failing, " and "), condition.noun,
                                       fmt::join(passing, " and "), condition.noun));
    if (condition.part == "poison") {
      found_.lines.back() +=
          ": the result depends on what outputs or scratch hold before the launch";
    }
  }

  std::vector<std::string> values_of(const ContrastCondition& condition) const {
    // The stream policy of a real device cannot be set.
    if (condition.part == "policy") {
      return simulated_ ? std::vector<std::string>{"early", "late"} : std::vector<std::string>{};
    }
    const auto& parts = point_parts();
    return std::ranges::find(parts, condition.part, &PointPart::name)->values;
  }

  const Case& which_;
  const CaseResult& result_;
  const RunOptions& options_;
  const bool simulated_;
  Point base_;
  const std::unique_ptr<Problem> problem_;
  const Clock::time_point start_ = Clock::now();
  // Nanoseconds per run: by Problem::cost, and as measured for the first run.
  double modelled_run_ = 0, first_run_ = 0;
  // Results of earlier runs, by point, first_compared and number of the input set.
  std::map<std::tuple<std::string, std::int64_t, int>, ContrastRun> runs_;
  RowContrast rows_;
  Contrast found_;
};

}  // namespace

Contrast contrast(const Case& which, const CaseResult& result, const RunOptions& options) {
  const bool alone = which.scenario->mode == Scenario::Mode::eager ||
                     which.scenario->mode == Scenario::Mode::full_graph;
  if (!alone || !fails_by_values(result) || result.failed_at.empty()) return {};
  return Contrasted(which, result, options).find();
}

}  // namespace plumb::cases
