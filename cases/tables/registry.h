// SPDX-License-Identifier: Apache-2.0
//
// Every op, row, scenario and so every case of one op that this build knows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cases/tables/problem.h"
#include "cases/tables/row.h"

namespace plumb::cases {

// How an op is driven: cases/tables/scenarios.toml. Of mode composition only rows of fused ops get
// cases.
struct Scenario {
  enum class Mode { eager, full_graph, composition, concurrent };
  // What a judged replay has to equal bit by bit: one more replay, or a call on fresh state.
  enum class Equals { replay, eager };
  struct ScenarioStep {
    int live_percent = 100;          // of the captured size, rounded up
    int inputs = 0;                  // which set of inputs; the same number again is the same set
    Equals equals = Equals::replay;  // of mode full_graph
  };
  std::string name, why;
  Mode mode = Mode::eager;
  std::vector<ScenarioStep> steps;
  // Of mode concurrent: host threads with a stream each, and whether only rows that ask for an
  // early tier (Row::concurrent) get cases. These are of tier full.
  int runners = 1;
  bool few_rows = false;
};

// One op, or an op and what composes it. A whole decode step is a StepCase
// (decode/schedule/decode_step.h).
struct Case {
  const OpDefinition* op = nullptr;
  Row row;
  const Scenario* scenario = nullptr;
  std::string id() const;  // "op/row/scenario": the one spelling
  Tier tier() const;
};

const std::vector<OpDefinition>& all_ops();
// One more op of this process, with the text of its rows. Earlier references to ops stay valid.
// Throws BadRow for a name that there is, for too many ops, and for too many parameters. Not for
// several threads.
const OpDefinition& add_op(OpDefinition op, std::string rows);
const std::vector<Scenario>& all_scenarios();
// Throws BadRow, naming the nearest known name.
const OpDefinition& find_op(std::string_view name);

// The compiled-in rows of every op; rows of `overrides` (text of a case file and its name) take the
// place of all rows of their op.
struct CaseFile {
  std::string name, text;
};
std::vector<Case> all_cases(const std::vector<CaseFile>& overrides = {});
// Those of one op: the rows of no other are read.
std::vector<Case> cases_of(const OpDefinition& op, const std::vector<CaseFile>& overrides = {});
// The rows of `own`, or those of the overrides with this schema's name.
std::vector<Row> rows_of(const RowSchema& schema, const CaseFile& own,
                         const std::vector<CaseFile>& overrides);

// Does `pattern` ("*" and "?" as in a shell; "op", "op/row" stand for all below them) name this
// case?
bool matches(std::string_view pattern, std::string_view id);

}  // namespace plumb::cases
