// SPDX-License-Identifier: Apache-2.0
//
// Runs the tasks of plumb run on several threads and reports the results in the order of the tasks.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "process/terminal.h"
#include "tools/case_runner.h"
#include "tools/device_memory_turns.h"

namespace plumb::tools {

// Thrown when --maxfail cases have failed.
class EnoughFailures : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class RunReporter {
 public:
  // `devices`: devices that workers are spread over (tools/run/devices.h).
  RunReporter(const std::vector<Task>& tasks, const RunArguments& arguments,
              std::vector<std::string> devices = {});

  // Appends to `all`, which after an exception holds the finished cases. Throws EnoughFailures.
  void run(int jobs, cases::Tier tier, std::vector<Finished>& all);

 private:
  void report(const Finished& finished, std::size_t done);
  std::string text_of(const Finished& finished);
  void report_op(std::size_t done);
  void count_failure(const Finished& finished);

  const std::vector<Task>& tasks_;
  const RunArguments& arguments_;
  const std::vector<std::string> devices_;
  DeviceMemoryTurns memory_;
  int passed_of_op_ = 0, cases_of_op_ = 0, failures_ = 0;
  std::map<std::string, std::string>
      shown_;  // case and platform of the first failure of each signature
  const Style style_;
  process::StatusLine progress_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace plumb::tools
