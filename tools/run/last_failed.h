// SPDX-License-Identifier: Apache-2.0
//
// plumb run --last-failed: selects the cases that failed in the report of an earlier run.
#pragma once

#include <string>
#include <vector>

#include "tools/case_runner.h"

namespace plumb::tools {

// Those of `tasks` that failed or were untrusted in the JSON report at `path`. Throws UsageError
// with one line if the report cannot be read or has no failure among the tasks.
std::vector<Task> last_failed(const std::vector<Task>& tasks, const std::string& path);

}  // namespace plumb::tools
