// SPDX-License-Identifier: Apache-2.0
//
// plumb run --resume: takes the finished cases of an interrupted run from its report and runs the
// others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/case_runner.h"
#include "tools/report.h"

namespace plumb::tools {

// Tasks and their results, in the order of the whole run.
struct TasksAndResults {
  std::vector<Task> tasks;
  std::vector<Finished> all;
};

struct ResumedRun {
  TasksAndResults done;
  std::vector<Task> left;
  std::int64_t without_pictures = 0;  // RunReport::without_pictures of the finished part
};

// Splits the tasks into those that the report at `path` has and the others. `now`: tier, seed,
// plug-in and origin of this run. Throws UsageError if the report is of a run that ended, of other
// cases, or of another plumb.
ResumedRun resume(const std::vector<Task>& tasks, const std::string& path, const RunReport& now);

// Joins both parts in the order of `tasks`. `more`: results of the first tasks of `left`.
TasksAndResults whole_run(const std::vector<Task>& tasks, TasksAndResults done,
                          const std::vector<Task>& left, std::vector<Finished> more);

}  // namespace plumb::tools
