// SPDX-License-Identifier: Apache-2.0
#include "cases/studies/contrast.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "cases/drivers/point_text.h"
#include "cases/drivers/verdict_listener.h"
#include "cases/judge/unwritten.h"
#include "cases/studies/right_under.h"
#include "cases/studies/row_contrast.h"

namespace plumb::cases {

namespace {

constexpr double kMostNanosecondsOfContrast = 2e9;  // of all runs (Problem::cost)
constexpr int kContrastRuns = 18;  // that a contrast takes if every condition matters
constexpr int kOtherInputs = 8;    // for rows enough to separate them

enum class ContrastVerdict { passes, fails, cannot_say };

struct ContrastRun {
  ContrastVerdict verdict = ContrastVerdict::cannot_say;
  std::shared_ptr<const CaseEvidence> evidence;
};

// A condition of the failing point and what a report calls its values.
struct ContrastCondition {
  std::string_view part;  // of a point (point_text.h)
  std::string_view noun;
};
constexpr std::array kConditions{ContrastCondition{"policy", "streams"},
                                 ContrastCondition{"poison", "poison"},
                                 ContrastCondition{"fill", "fill"}};

// Does the launch leave every promised element of every output as it was? In at least one output
// that shows poison.
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
        base_(point_from(result.failed_at)),
        problem_(make_problem(which, options, false)) {
    const double launches = static_cast<double>(result.launches) /
                            static_cast<double>(std::max<std::int64_t>(result.points, 1));
    const double run = launches * (problem_->cost() + verdict_cost(*problem_));
    runs_left_ =
        static_cast<int>(std::min<double>(kContrastRuns, kMostNanosecondsOfContrast / run));
  }

  Contrast find() {
    if (runs_left_ < 1 || at(base_).verdict != ContrastVerdict::fails) return found_;
    find_unwritten();
    if (!found_.cause.empty()) return found_;
    for (const ContrastCondition& one : kConditions) compare(one);
    for (int i = 1; i <= kOtherInputs && runs_left_ > 0; ++i) {
      if (at(base_, i).verdict == ContrastVerdict::cannot_say) break;
    }
    const std::string rows = rows_.text();
    if (!rows.empty()) {
      found_.lines.push_back(fmt::format("with {} fill, {}", part_of(base_, "fill"), rows));
    }
    return found_;
  }

 private:
  // `inputs`: 0 for those of the failure.
  ContrastRun at(const Point& point, int inputs = 0) {
    --runs_left_;
    RunOptions options = options_;
    options.point = point;
    options.seed += static_cast<std::uint64_t>(inputs);
    options.on_real_launch = {};
    // Other fills have other bounds.
    const VerdictListener listener([&](const Problem& problem, const Launched& launched,
                                       const std::vector<TensorReport>& reports) {
      if (point.fill == base_.fill) rows_.add(problem, launched, reports);
    });
    try {
      const CaseResult result = run_case(which_, options);
      if (result.outcome == Outcome::passed) return {ContrastVerdict::passes, nullptr};
      if (fails_by_values(result)) return {ContrastVerdict::fails, result.evidence};
    } catch (const std::exception&) {  // a row or a point that is impossible with other inputs
    }
    return {};
  }

  Point with(const ContrastCondition& condition, const std::string& value) const {
    Point point = base_;
    set_part(point, condition.part, value);
    return point;
  }

  // Poison may be a result by chance. Under two of its values it is not.
  void find_unwritten() {
    const CaseEvidence* evidence = result_.evidence.get();
    if (evidence == nullptr || !wrote_nothing(*problem_, *evidence)) return;
    Point other = base_;
    other.poison = evidence->poison == Poison::huge ? Poison::nan : Poison::huge;
    other.conditions.policy = device::Policy::early;
    const ContrastRun early = at(other);
    const bool is_late = base_.conditions.policy != device::Policy::early;
    if (early.verdict == ContrastVerdict::passes && is_late) {
      found_.cause = fmt::format(
          "the kernel works before the stream reaches its launch: outputs are {} under {} streams, "
          "and right under early streams",
          kNeverWritten, part_of(base_, "policy"));
    } else if (early.evidence && wrote_nothing(*problem_, *early.evidence)) {
      const bool replayed = which_.scenario->mode == Scenario::Mode::full_graph;
      found_.cause =
          fmt::format("the {} wrote nothing: every promised element of the outputs was {}",
                      replayed ? "replay" : "kernel", kNeverWritten);
    }
  }

  // Values of a condition under which the case passes, each with two sets of inputs, while it fails
  // at its own value with both.
  void compare(const ContrastCondition& condition) {
    const std::string own = part_of(base_, condition.part);
    std::vector<std::string> passing, failing{own};
    for (const std::string& value : values_of(condition)) {
      if (value == own || runs_left_ < 1) continue;
      const ContrastVerdict verdict = at(with(condition, value)).verdict;
      if (verdict == ContrastVerdict::fails) failing.push_back(value);
      if (verdict == ContrastVerdict::passes) passing.push_back(value);
    }
    if (passing.empty() || runs_left_ < 1 + static_cast<int>(passing.size())) return;
    if (at(base_, 1).verdict != ContrastVerdict::fails) return;
    for (const std::string& value : passing) {
      if (at(with(condition, value), 1).verdict != ContrastVerdict::passes) return;
    }
    found_.lines.push_back(fmt::format("fails with {} {}, passes with {} {}",
                                       fmt::join(failing, " and "), condition.noun,
                                       fmt::join(passing, " and "), condition.noun));
    if (condition.part == "poison") {
      found_.lines.back() += ": the result depends on what outputs hold before the launch";
    }
  }

  std::vector<std::string> values_of(const ContrastCondition& condition) const {
    // A real device has streams of its own.
    if (condition.part == "policy") {
      return options_.platform.starts_with("sim-") ? std::vector<std::string>{"early", "late"}
                                                   : std::vector<std::string>{};
    }
    const auto& parts = point_parts();
    return std::ranges::find(parts, condition.part, &PointPart::name)->values;
  }

  const Case& which_;
  const CaseResult& result_;
  const RunOptions& options_;
  const Point base_;
  const std::unique_ptr<Problem> problem_;
  int runs_left_ = 0;
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
