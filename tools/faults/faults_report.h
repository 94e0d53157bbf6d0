// SPDX-License-Identifier: Apache-2.0
//
// What plumb faults prints and writes.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/fault_verdict.h"
#include "tools/report.h"

namespace plumb::tools {

// What the columns and marks of the matrix mean.
std::string fault_matrix_legend();
// Of one platform's part: a column per detector.
std::string fault_matrix_head(const std::string& platform, const Style& style);
// A fault's row, and a line of what it stands for and what was blamed.
std::string fault_text(const cases::FinishedRun& finished, const Style& style);

// The same faults in other places, and what the diagnosis makes of them.
std::string elsewhere_head(const Style& style);
std::string elsewhere_text(const cases::FinishedRun& finished, const Style& style);

// What steps without a fault raised; "" for no alarm.
std::string alarm_text(const cases::FinishedRun& finished, const Style& style);

std::string shares_text(const cases::Shares& shares, const Style& style);

// 0 all is as it should be, 1 it is not, 2 nothing but skips.
int exit_code(const cases::Shares& shares);

std::string to_json(const std::vector<cases::FinishedRun>& all);

}  // namespace plumb::tools
