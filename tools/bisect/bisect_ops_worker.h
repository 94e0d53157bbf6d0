// SPDX-License-Identifier: Apache-2.0
//
// The questions of plumb bisect ops, each asked in a process of its own: a broken op may crash it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bisect/ops/ops_search.h"
#include "decode/schedule/decode_step.h"
#include "decode/watch/replay_diff.h"
#include "process/worker.h"

namespace plumb::tools {

struct TwiceAnswer {
  std::optional<cases::ReplayDifference> difference;
  std::string failed;  // why there is no answer; "": there is
};

// The parent's side.
class OpsWorker {
 public:
  OpsWorker(std::vector<std::string> command, double timeout);

  bisect::OpsAnswer watch(const std::string& platform, const bisect::Ops& exchanged);
  // Empty where the process died or the steps threw.
  std::vector<float> results(const std::string& platform, const bisect::Ops& exchanged);
  // The n-th of cases::second_runs().
  TwiceAnswer twice(const std::string& platform, std::size_t second);

 private:
  process::Worker worker_;
  std::uint64_t asked_ = 0;
};

// The worker's side. `serve` makes the case on a platform anew: what is planted may remember the
// engines of another watch.
using ServeCase = std::function<cases::ServedCase(const std::string& platform)>;
int serve_ops(const ServeCase& serve);

}  // namespace plumb::tools
