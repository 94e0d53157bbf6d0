// SPDX-License-Identifier: Apache-2.0
//
// A case of an op or of decode steps, with the members that lists, selections and searches of cases
// need.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "decode/schedule/decode_step.h"

namespace plumb::cases {

class AnyCase {
 public:
  AnyCase(Case which) : which_(std::move(which)) {}
  AnyCase(StepCase which) : which_(std::move(which)) {}

  const Row& row() const;
  const RowSchema& schema() const;
  // "rms_norm", or "decode_step".
  std::string_view op() const { return schema().name; }
  // "full_graph", or the graph mode.
  std::string_view scenario() const;
  std::string_view scenario_why() const;
  std::string id() const;  // "op/row/scenario"
  Tier tier(bool with_plugin = false) const;
  // Throws BadRow, as cases::set_parameter.
  void set_parameter(std::string_view name, std::string_view value);

  // The case as its own type; nullptr if it is of the other type.
  const Case* of_op() const { return std::get_if<Case>(&which_); }
  const StepCase* of_steps() const { return std::get_if<StepCase>(&which_); }
  StepCase* of_steps() { return std::get_if<StepCase>(&which_); }

 private:
  std::variant<Case, StepCase> which_;
};

// Cases of ops, then cases of decode steps. `overrides`: case files of both kinds. `ops`: read only
// the rows of these; empty: of all.
std::vector<AnyCase> cases_of_all_kinds(const std::vector<CaseFile>& overrides = {},
                                        const std::vector<std::string>& ops = {});
// Cases of ops only.
std::vector<Case> op_cases(const std::vector<CaseFile>& overrides,
                           const std::vector<std::string>& ops = {});

// Schema of an op, or of decode steps. Throws BadRow, naming the nearest known name.
const RowSchema& find_schema(std::string_view name);

}  // namespace plumb::cases
