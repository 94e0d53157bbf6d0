// SPDX-License-Identifier: Apache-2.0
//
// Lists all ops, rows and scenarios of this build, and thereby all cases of single ops.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tables/row.h"

namespace plumb::cases {

// How an op is driven, from cases/tables/scenarios.toml. Mode composition applies to rows of fused
// ops only.
struct Scenario {
  enum class Mode { eager, full_graph, composition, concurrent, queued };
  // What a judged replay must equal bit by bit: a second replay, or a call on fresh state.
  enum class Equals { replay, eager };
  struct ScenarioStep {
    int live_percent = 100;          // percent of the captured size, rounded up
    int inputs = 0;                  // number of the input set; equal numbers have equal inputs
    Equals equals = Equals::replay;  // mode full_graph only
  };
  std::string name, why;
  Mode mode = Mode::eager;
  std::vector<ScenarioStep> steps;
  int runners = 1;  // mode concurrent only: host threads, each with its own stream
  // few_rows: only rows whose Row::concurrent is an earlier tier than full get a case. full_only:
  // it is in tier full.
  bool few_rows = false, full_only = false;
};

// A case of one op, or of a fused op and its composition. Cases of whole decode steps are StepCase
// (decode/schedule/decode_step.h).
struct Case {
  const OpDefinition* op = nullptr;
  Row row;
  const Scenario* scenario = nullptr;
  std::string id() const;  // "op/row/scenario", the only spelling
  // with_plugin: of a run of a plug-in's kernels.
  Tier tier(bool with_plugin = false) const;
};

const std::vector<OpDefinition>& all_ops();
// Adds an op to this process, with the text of its rows. References to ops stay valid. Throws
// BadRow for a name that exists, for too many ops, and for too many parameters. Not thread-safe.
const OpDefinition& add_op(OpDefinition op, std::string rows);
const std::vector<Scenario>& all_scenarios();
// Throws BadRow; the message suggests the nearest known name.
const OpDefinition& find_op(std::string_view name);

// All cases of every op. Rows are compiled in; if an op has a case file in `overrides` (text and
// name), the file's rows replace all rows of the op.
struct CaseFile {
  std::string name, text;
};
std::vector<Case> all_cases(const std::vector<CaseFile>& overrides = {});
// The cases of one op. Rows of other ops are not read.
std::vector<Case> cases_of(const OpDefinition& op, const std::vector<CaseFile>& overrides = {});
// The rows in `own`, or, if there are overrides with this schema's name, the rows in these.
std::vector<Row> rows_of(const RowSchema& schema, const CaseFile& own,
                         const std::vector<CaseFile>& overrides);

// True if the pattern names this case. * and ? are wildcards as in a shell; "op" and "op/row" match
// all cases below them.
bool matches(std::string_view pattern, std::string_view id);

}  // namespace plumb::cases
