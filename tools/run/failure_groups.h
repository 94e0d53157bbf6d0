// SPDX-License-Identifier: Apache-2.0
//
// Failures that look alike: one wrong line in a kernel fails every case of its op.
#pragma once

#include <string>
#include <vector>

#include "tools/case_runner.h"
#include "tools/report.h"

namespace plumb::tools {

// Did it fail, or prove too little?
bool is_failure(const Finished& finished);

// What a failure has in common with those that have the same cause: the op, what is wrong in its
// first line (without numbers), and the cause if one is known.
std::string signature_of(const Finished& failure);

struct FailureGroup {
  std::string signature;
  std::vector<const Finished*> failures;  // in the order of the run, not empty
};
// In the order of their first failures.
std::vector<FailureGroup> failure_groups(const std::vector<Finished>& all);

// "FAIL  op/row/scenario   platform   as op/other_row/scenario", of a failure whose group has been
// shown in full.
std::string repeated_failure_text(const Finished& failure, const std::string& first,
                                  const Style& style);

// The end of a run: each group with its count, its cases, and what these have in common. `tasks`
// are those that `all` came of, in the same order. "" without a failure.
std::string failure_summary(const std::vector<Finished>& all, const std::vector<Task>& tasks,
                            const Style& style);

}  // namespace plumb::tools
