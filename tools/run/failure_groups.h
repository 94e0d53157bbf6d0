// SPDX-License-Identifier: Apache-2.0
//
// Groups failures that look alike, because one wrong line in a kernel fails every case of its op.
#pragma once

#include <string>
#include <vector>

#include "tools/case_runner.h"
#include "tools/report.h"

namespace plumb::tools {

// Whether the case failed, or is untrusted: it passed, but could not have failed.
bool is_failure(const Finished& finished);

// Key that failures with the same cause share: op, first line of the failure without numbers, and
// the diagnosed cause if there is one.
std::string signature_of(const Finished& failure);

struct FailureGroup {
  std::string signature;
  std::vector<const Finished*> failures;  // in the order of the run; not empty
};
// Ordered by their first failures.
std::vector<FailureGroup> failure_groups(const std::vector<Finished>& all);

// "FAIL  op/row/scenario   platform   as op/other_row/scenario": line of a failure whose group has
// already had its first failure printed in full.
std::string repeated_failure_text(const Finished& failure, const std::string& first,
                                  const Style& style);

// Text at the end of a run: each group with its count, its cases, and what they have in common.
// `tasks`: the tasks that gave `all`, in the same order. "" without a failure.
std::string failure_summary(const std::vector<Finished>& all, const std::vector<Task>& tasks,
                            const Style& style);

}  // namespace plumb::tools
