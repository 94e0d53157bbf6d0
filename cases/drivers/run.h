// SPDX-License-Identifier: Apache-2.0
//
// Runs one case on one platform and returns its result.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cases/judge/judge.h"
#include "cases/tables/alternative.h"
#include "cases/tables/registry.h"
#include "device/device.h"

namespace plumb::cases {

enum class Outcome { passed, failed, skipped, untrusted, known_bug };
std::string_view name_of(Outcome outcome);

// Byte value that fills outputs and scratch before a launch. Elements that still hold it were never
// written.
enum class Poison : std::uint8_t {
  nan = 0xff,   // NaN in every float format, -1 in integers
  huge = 0x7b,  // 1.3e36 in bf16 and fp32, 0x7b7b7b7b in integers
  zero = 0x00
};
std::string_view name_of(Poison poison);

// One combination of the conditions under which a case is tried (DESIGN.md, decision 13).
struct Point {
  device::Conditions conditions;
  Fill fill = Fill::real;
  Poison poison = Poison::nan;
  // Kind of padding in the first step (index of kDeadRows in scenario.cpp). Later steps take the
  // next kinds in turn.
  int first_dead_rows = 0;
  // Limits of a case that was reduced: most live rows per step, and number of the scenario's first
  // steps that run.
  std::optional<std::int64_t> most_live = {};
  std::optional<std::int64_t> most_steps = {};
  // From this step on, each judged launch is repeated and both results are compared bit by bit.
  std::int64_t first_compared = 0;
  std::string text() const;
};

// A launch whose outputs were read back.
struct Launched {
  const Step& step;
  const TensorSet& tensors;  // inputs, and outputs as stored by the device
  const plumb_numerics& declared;
};

struct RunOptions {
  std::string platform;
  Tier tier = Tier::standard;
  std::uint64_t seed = 0;  // added to the seed that the case's name gives
  // Hooks that plug-ins and planted faults replace: how devices are opened, which kernels run, and
  // (fresh_state_for_capture) whether a capture starts from fresh state.
  std::function<std::unique_ptr<device::Device>(std::string_view, const device::Conditions&)> open =
      [](std::string_view name, const device::Conditions& conditions) {
        return device::open_device(name, conditions);
      };
  std::function<const device::Implementation&(std::string_view, bool checked)> implementation =
      [](std::string_view name, bool checked) -> const device::Implementation& {
    return checked ? device::checked_implementation(name) : device::builtin_implementation(name);
  };
  // The kernels are a plug-in's. They cannot be instrumented and their thread order cannot be set,
  // so no point tries that.
  bool foreign = false;
  std::string plugin = {};  // its name and version, for the provenance of goldens
  // Platforms that run the same kernels divide the schedules of decode steps among themselves. Set
  // in the default tier only, for rows that no option changes.
  bool divides_schedules = false;
  // Digest the outputs of each call of a decode step.
  bool digests_calls = false;
  // If set, the case runs under this combination of conditions only.
  std::optional<Point> point = {};
  // Values of the op's choices, spelled as in contract.h, that replace the row's: `launched_under`
  // in the launch parameters (simulates a kernel that ignores them), `judged_under` in the verdict
  // (would the result be right under another declaration?).
  std::string launched_under = {}, judged_under = {};
  // Changes the numerics that an implementation declares for a launch.
  std::function<void(plumb_numerics&)> redeclare = [](plumb_numerics&) {};
  bool fresh_state_for_capture = true;
  // Called after the first launch of an eager case, if its values are real and all rows are live:
  // goldens are recorded from such launches.
  std::function<void(const Problem&, const Launched&)> on_real_launch = {};
  // What a planted fault makes the runners of a concurrent case share. Correct runners share
  // nothing.
  enum class Sharing { nothing, inputs, state };
  Sharing shared_by_runners = Sharing::nothing;
  // Nanoseconds of one core that a verdict may take. A problem with a more expensive verdict is
  // judged on a sample of its rows, if its op has rows (OpDefinition::row_count).
  double verdict_budget = 4e9;
  std::int64_t least_sample = 32;  // smallest sample, in rows
  std::vector<std::string> disabled_barriers;
};

// Statistics of one tensor over all launches of a case.
struct TensorSummary {
  std::string tensor;
  std::int64_t elements_compared = 0;
  double margin = 0;           // largest error divided by its bound
  double observability = 1;    // smallest observability of any launch
  double most_observable = 0;  // largest observability of nonzero values
  double zero_share = 1;       // smallest share of zeros among expected values
  // Codes and choices that differ from the exact ones, but are within the error model.
  std::int64_t flips = 0;
  std::string flip;  // text for the first of these choices
  Sample sample;     // sum over all sampled verdicts
};

struct Failure {
  std::string context;             // point and step of the failure
  std::vector<std::string> lines;  // damage, failed checks of tensors, and patterns
  std::vector<TensorReport> reports;
  // Set if no value is wrong: name of a device::ErrorKind, "guard_damaged", "input_changed" or
  // "gap_written". "" if none of these applies.
  std::string kind = {};
};

// Seconds spent in each phase.
struct Phases {
  double fill = 0, reference = 0, device = 0, judge = 0;
};

// The tensors and conditions of a failed verdict, kept for the diagnosis.
struct CaseEvidence {
  Point point;
  Poison poison;  // poison before this launch
  Step step;
  TensorSet tensors;  // inputs, and outputs as stored by the device
  plumb_numerics declared;
};

struct CaseResult {
  std::string id, platform;
  Outcome outcome = Outcome::passed;
  std::string reason;  // why the case was skipped, is untrusted, or has a known bug
  // True if the case was skipped because a real device ran out of memory. If the case runs alone,
  // it may fit.
  bool lacked_memory = false;
  std::vector<Failure> failures;
  std::vector<TensorSummary> tensors;
  std::int64_t points = 0, launches = 0, comparisons = 0;
  Phases phases;
  // Data of the first failed verdict. null if it is too large to keep.
  std::shared_ptr<const CaseEvidence> evidence = nullptr;
  std::string diagnosis = {};                 // one line: the fault that the failure looks like
  std::vector<Alternative> right_under = {};  // declarations under which the case passes
  // Filled if right_under is empty: values of choices under which the case passes only because it
  // becomes another case, with other inputs or with fewer outputs compared.
  std::vector<Alternative> passes_under = {};
  std::string failed_at = {};  // the failed point in --point syntax (cases/drivers/point_text.h)
  // Passed verdicts by a digest of everything that was judged. If another point gives the same
  // inputs and the same output bits, its verdict is the same and is not computed again.
  std::map<std::array<std::uint64_t, 2>, std::vector<TensorReport>> known_verdicts;
};

CaseResult run_case(const Case& which, const RunOptions& options);

// Sets the final outcome after all points ran: failed, untrusted if too little was compared, and
// the effect of a known bug of the row.
void settle(const Row& row, CaseResult& result);

// Makes the problem that a case runs, for the implementation's checked or plain kernels.
std::unique_ptr<Problem> make_problem(const Case& which, const RunOptions& options, bool checked);

// Nanoseconds of one verdict: the op's reference, plus the judge's time for every element that the
// kernel writes.
double verdict_cost(const Problem& problem);

// The points that a case runs in a tier: a pairwise covering array drawn from the case's seed, cut
// by the problem's cost. The clock has no influence.
std::vector<Point> choose_points(const Case& which, const Problem& problem,
                                 const RunOptions& options);

}  // namespace plumb::cases
