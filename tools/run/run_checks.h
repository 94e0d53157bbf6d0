// SPDX-License-Identifier: Apache-2.0
//
// What can be wrong with a command line of plumb run, found before the first case runs; and, behind
// the last one, what was asked for and is not whole.
#pragma once

#include <vector>

#include "tools/case_runner.h"
#include "tools/commands.h"

namespace plumb::tools {

// Conditions that only a simulated device, and only plumb's own kernels, can have. Throws
// UsageError.
void check_point(const Selection& selection, const SelectedAny& selected);
// An expectation that no case can disappoint. Throws UsageError.
void check_kernels(const Selection& selection, const SelectedAny& selected);
// A report that cannot be written is better known before an hour of work than after it. Throws
// UsageError.
void check_reports(const RunArguments& arguments);
// A bad row is reported before anything runs. Throws cases::BadRow, process::Interrupted.
void check_rows(const std::vector<Task>& tasks);
// A store that cannot be used is better known before the first case. Throws UsageError.
void check_goldens(const RunArguments& arguments, const std::vector<Task>& tasks);

// A folder that was asked for and is not whole: an error behind all reports. Throws
// std::runtime_error.
void check_dumps(const std::vector<Finished>& all);

}  // namespace plumb::tools
