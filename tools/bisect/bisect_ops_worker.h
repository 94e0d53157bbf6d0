// SPDX-License-Identifier: Apache-2.0
//
// The questions of plumb bisect ops, each put to a process of its own: what is broken may crash it.
// A question is a number, so that a worker, which has the same command line, knows it.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bisect/ops/ops_search.h"
#include "decode/schedule/decode_step.h"
#include "decode/watch/twice.h"
#include "tools/worker.h"

namespace plumb::tools {

struct TwiceAnswer {
  std::optional<cases::Difference> difference;
  std::string failed;  // why there is no answer; "": there is
};
nlohmann::json to_json(const TwiceAnswer& answer);
TwiceAnswer twice_from_json(const nlohmann::json& json);

// The parent's side. `platform` is an index into those of the command line.
class OpsWorker {
 public:
  OpsWorker(std::vector<std::string> command, double timeout);

  bisect::OpsAnswer watch(std::size_t platform, const bisect::Ops& exchanged);
  // Empty where the process died or the steps threw.
  std::vector<float> results(std::size_t platform, const bisect::Ops& exchanged);
  // The n-th of cases::second_runs().
  TwiceAnswer twice(std::size_t platform, std::size_t second);

 private:
  Worker worker_;
};

// The worker's side. `serve` makes the case on a platform anew: what is planted may remember the
// engines of another watch.
using ServeCase = std::function<cases::ServedCase(std::size_t platform)>;
Bytes answer_ops(const ServeCase& serve, std::uint64_t task);

}  // namespace plumb::tools
