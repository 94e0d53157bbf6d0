// SPDX-License-Identifier: Apache-2.0
//
// Worker processes of plumb judge. Only these read trace files.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <variant>

#include "process/codec.h"
#include "process/interrupts.h"
#include "process/ordered_map.h"
#include "process/own_program.h"
#include "trace/trace.h"

namespace plumb::tools {

// The worker process of one thread, for one role.
class TraceWorker {
 public:
  explicit TraceWorker(std::string role)
      : worker_({.words = process::own_command_line(),
                 .role = std::move(role),
                 .timeout = kLongestRequest}) {}

  // `what` is for the message if the worker dies: "recording/rank-0/step-000001.h5: its chains".
  // Throws BadTrace, Interrupted.
  template <class Answer, class Request>
  Answer ask(const Request& request, const std::string& what) {
    process::Interrupts::check();
    auto answer = process::ask<Answer>(worker_, requests_++, what, request);
    if (const auto* death = std::get_if<process::Death>(&answer)) {
      throw trace::BadTrace(fmt::format("{}: {}", what, death->why));
    }
    auto& received = std::get<Answer>(answer);
    if (!received.refused.empty()) throw trace::BadTrace(received.refused);
    return std::move(received);
  }

 private:
  static constexpr double kLongestRequest = 600;  // in seconds

  process::Worker worker_;
  std::uint64_t requests_ = 0;
};

// Sends the requests to `jobs` workers and takes the answers in order: take(i, answer).
template <class Answer, class Request>
void ask_trace_workers(const char* role, int jobs, const std::vector<Request>& requests,
                       const auto& what_of, const auto& take) {
  process::OrderedMap<Answer> map(requests.size(), [&] {
    return [&, worker = std::make_shared<TraceWorker>(role)](std::size_t i) {
      return worker->template ask<Answer>(requests[i], what_of(requests[i]));
    };
  });
  map.run(jobs, take);
}

}  // namespace plumb::tools
