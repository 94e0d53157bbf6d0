// SPDX-License-Identifier: Apache-2.0
//
// Checks of a plumb run command line before the first case runs, and one check after the last case.
#pragma once

#include <vector>

#include "tools/case_runner.h"
#include "tools/commands.h"

namespace plumb::tools {

// Checks --point (conditions of a run, such as thread order and poison): throws UsageError for
// conditions that only a simulated device or plumb's own kernels can have.
void check_point(const Selection& selection, const SelectedAny& selected);
// --expect-kernel: throws UsageError if no selected case can check it.
void check_kernels(const Selection& selection, const SelectedAny& selected);
// Checks that reports can be written, before an hour of work. Throws UsageError.
void check_reports(const RunArguments& arguments);
// Checks all rows. Throws cases::BadRow, process::Interrupted.
void check_rows(const std::vector<Task>& tasks);
// Checks that the golden store is usable. Throws UsageError.
void check_goldens(const RunArguments& arguments, const std::vector<Task>& tasks);

// Checks after all reports are written that each --dump folder is complete. Throws
// std::runtime_error.
void check_dumps(const std::vector<Finished>& all);

}  // namespace plumb::tools
