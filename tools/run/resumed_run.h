// SPDX-License-Identifier: Apache-2.0
//
// plumb run --resume: what an interrupted run has done is taken from its report, and the rest runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/case_runner.h"
#include "tools/report.h"

namespace plumb::tools {

// Results beside the tasks that they are of, in the order of the whole run.
struct TasksAndResults {
  std::vector<Task> tasks;
  std::vector<Finished> all;
};

struct ResumedRun {
  TasksAndResults done;
  std::vector<Task> left;
  std::int64_t without_pictures = 0;  // RunReport::without_pictures of what is done
};

// Divides the tasks by what the report at `path` has. `now`: tier, seed, plug-in and origin of this
// run. Throws UsageError for a report of a run that ended, of other cases, or of another plumb.
ResumedRun resume(const std::vector<Task>& tasks, const std::string& path, const RunReport& now);

// Both parts, in the order of `tasks`. `more` are results of the first tasks of `left`.
TasksAndResults whole_run(const std::vector<Task>& tasks, TasksAndResults done,
                          const std::vector<Task>& left, std::vector<Finished> more);

}  // namespace plumb::tools
