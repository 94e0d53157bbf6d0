// SPDX-License-Identifier: Apache-2.0
//
// Worker process of plumb bisect ops. Each question is asked in it, because a broken op may crash
// the process.
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
  std::string failed;  // reason why there is no answer; "": there is one
};

// Used in the parent process.
class OpsWorker {
 public:
  OpsWorker(std::vector<std::string> command, double timeout);

  bisect::OpsAnswer watch(const std::string& platform, const bisect::Ops& exchanged);
  // Empty if the process died or the steps threw.
  std::vector<float> results(const std::string& platform, const bisect::Ops& exchanged);
  // `second`: number in cases::second_runs().
  TwiceAnswer twice(const std::string& platform, std::size_t second);

 private:
  process::Worker worker_;
  std::uint64_t asked_ = 0;
};

// Runs in the worker process. `serve` sets the case up anew for each question, because planted
// objects may keep state of an earlier watch. Replaced ops run in the reference. With `plugin`, a
// path, they are ops of the plug-in, and run plumb's own kernels in its process.
using ServeCase = std::function<cases::ServedCase(const std::string& platform)>;
int serve_ops(const ServeCase& serve, const std::string& plugin);

}  // namespace plumb::tools
