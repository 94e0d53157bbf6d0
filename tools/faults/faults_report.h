// SPDX-License-Identifier: Apache-2.0
//
// Text and JSON report of plumb faults.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/fault_verdict.h"
#include "tools/report.h"

namespace plumb::tools {

// Explains the columns and marks of the matrix.
std::string fault_matrix_legend();
// Head of the matrix of one platform: one column per detector (check of a decode step).
std::string fault_matrix_head(const std::string& platform, const Style& style);
// Row of a fault, and a line with its meaning and the op blamed first.
std::string fault_text(const cases::FinishedRun& finished, const Style& style);

// Runs of the same faults in a second setup, with their diagnosis.
std::string elsewhere_head(const Style& style);
std::string elsewhere_text(const cases::FinishedRun& finished, const Style& style);

// Alarms of steps without a fault; "": none.
std::string alarm_text(const cases::FinishedRun& finished, const Style& style);

std::string shares_text(const cases::Shares& shares, const Style& style);

// Code 0: all faults were found as expected, and no alarm was false. 1: otherwise. 2: everything
// was skipped.
int exit_code(const cases::Shares& shares);

std::string to_json(const std::vector<cases::FinishedRun>& all);

}  // namespace plumb::tools
