// SPDX-License-Identifier: Apache-2.0
//
// Runs one case on one platform and says what came of it.
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

// Byte that outputs and scratch hold before a launch.
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
  int first_dead_rows =
      0;  // which kind of padding the first step gets; later steps go on from there
  // Of a case that was made smaller: at most so many live rows in each step, and the first steps of
  // the scenario only.
  std::optional<std::int64_t> most_live = {};
  std::optional<std::int64_t> most_steps = {};
  // From this step on, each judged launch is compared bit by bit with one more.
  std::int64_t first_compared = 0;
  std::string text() const;
};

// A launch that was read back.
struct Launched {
  const Step& step;
  const TensorSet& tensors;  // inputs, and what the device stored
  const plumb_numerics& declared;
};

struct RunOptions {
  std::string platform;
  Tier tier = Tier::standard;
  std::uint64_t seed = 0;  // added to the case's own
  // What a fault replaces: how devices are opened, which kernels run, what a capture starts from.
  std::function<std::unique_ptr<device::Device>(std::string_view, const device::Conditions&)> open =
      [](std::string_view name, const device::Conditions& conditions) {
        return device::open_device(name, conditions);
      };
  std::function<const device::Implementation&(std::string_view, bool checked)> implementation =
      [](std::string_view name, bool checked) -> const device::Implementation& {
    return checked ? device::checked_implementation(name) : device::builtin_implementation(name);
  };
  // A plug-in's kernels: nobody instruments them or orders their threads, so no point does.
  bool foreign = false;
  // Of the schedules of decode steps, platforms that run the same kernels take a part each. For
  // rows as they are listed, in the default tier.
  bool divides_schedules = false;
  // This point alone, in place of those that the tier has.
  std::optional<Point> point = {};
  // Values of the op's choices, as in contract.h. `launched_under` is in the parameters of launches
  // and `judged_under` in verdicts, in the place of the row's: what a kernel that ignores its
  // parameters does, and whether it would be right under another declaration.
  std::string launched_under = {}, judged_under = {};
  // Changes what an entry promises of a launch.
  std::function<void(plumb_numerics&)> redeclare = [](plumb_numerics&) {};
  bool fresh_state_for_capture = true;
  // Told of the first launch of an eager case if it has real values and all rows are live: a golden
  // is about such a launch.
  std::function<void(const Problem&, const Launched&)> on_real_launch = {};
  // What the runners of a concurrent case have in common, and may not.
  enum class Sharing { nothing, inputs, state };
  Sharing shared_by_runners = Sharing::nothing;
  // Nanoseconds of one core that a verdict may take. A problem whose verdict takes longer is judged
  // by a sample of its rows, if its op knows rows (OpDefinition::row_count).
  double verdict_budget = 4e9;
  std::int64_t least_sample = 32;  // rows
  std::vector<std::string> disabled_barriers;
};

// What one tensor showed over all launches of a case.
struct TensorSummary {
  std::string tensor;
  std::int64_t elements_compared = 0;
  double margin = 0;           // largest error / bound
  double observability = 1;    // smallest share
  double most_observable = 0;  // largest share, of values other than zero
  double zero_share = 1;       // smallest share
  std::int64_t flips = 0;      // codes and choices other than the exact ones, within the errors
  std::string flip;            // the first such choice, in words
  Sample sample;               // summed over all verdicts that judged one
};

struct Failure {
  std::string context;             // which point and step
  std::vector<std::string> lines;  // what is wrong, tensor by tensor
  std::vector<TensorReport> reports;
  // Of one in which no value is wrong: a device::ErrorKind's name, "guard_damaged",
  // "input_changed", "gap_written"; "" if there is no word for it.
  std::string kind = {};
};

// Seconds spent in each phase.
struct Phases {
  double fill = 0, reference = 0, device = 0, judge = 0;
};

// What a failed verdict was about, for diagnosis.
struct CaseEvidence {
  Point point;
  Poison poison;  // that was there before the launch
  Step step;
  TensorSet tensors;  // inputs, and what the device stored
  plumb_numerics declared;
};

struct CaseResult {
  std::string id, platform;
  Outcome outcome = Outcome::passed;
  std::string reason;  // of skipped, untrusted, known_bug
  // Skipped because a real device had no memory left: with nothing beside it the case may run.
  bool lacked_memory = false;
  std::vector<Failure> failures;
  std::vector<TensorSummary> tensors;
  std::int64_t points = 0, launches = 0, comparisons = 0;
  Phases phases;
  // Of the first verdict that failed, unless it is too large to keep.
  std::shared_ptr<const CaseEvidence> evidence = nullptr;
  std::string diagnosis = {};                 // what the failure looks like, in a line
  std::vector<Alternative> right_under = {};  // declarations under which the case passes
  // If there are none: values of choices under which it passes because it is another case, with
  // other inputs or with more left open.
  std::vector<Alternative> passes_under = {};
  std::string failed_at = {};  // the point, as --point reads it (cases/drivers/point_text.h)
  // Verdicts that were passes, by a digest of all that was judged. Points differ in what they do to
  // a kernel; where it gave the same bits to the same inputs once more, the verdict is the same.
  std::map<std::array<std::uint64_t, 2>, std::vector<TensorReport>> known_verdicts;
};

CaseResult run_case(const Case& which, const RunOptions& options);

// The outcome, when everything has run: failed, untrusted where too little was compared, and what a
// known bug of the row makes of it.
void settle(const Row& row, CaseResult& result);

// What a case runs, by the implementation's `checked` kernels or its plain ones.
std::unique_ptr<Problem> make_problem(const Case& which, const RunOptions& options, bool checked);

// Nanoseconds of one verdict: the op's reference, and what the judge spends on every element that a
// kernel writes.
double verdict_cost(const Problem& problem);

// The points that a case gets in a tier: a pairwise array chosen by the case's seed, thinned by the
// problem's cost, never by the clock.
std::vector<Point> choose_points(const Case& which, const Problem& problem,
                                 const RunOptions& options);

}  // namespace plumb::cases
