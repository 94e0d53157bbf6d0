// SPDX-License-Identifier: Apache-2.0
#include "tools/bisect/bisect_ops_worker.h"

#include <utility>

#include "bisect/ops/step_ops.h"
#include "tools/bisect/bisect_ops_codec.h"

namespace plumb::tools {

namespace {

using process::Bytes;
using process::Death;

template <class Answered>
std::variant<Answered, Death> ask(process::Worker& worker, std::uint64_t task,
                                  const OpsRequest& request) {
  const std::string name = std::string(name_of(request.question)) + " on " + request.platform;
  return process::ask<Answered>(worker, task, name, request);
}

TwiceAnswer answer_twice(const cases::ServedCase& served, const cases::ServedCase& again,
                         std::size_t second) {
  TwiceAnswer answer;
  try {
    const auto runs = cases::second_runs(again.setup);
    answer.difference = cases::first_difference(served.setup, runs.at(second), served.shape);
  } catch (const std::exception& error) {
    answer.failed = error.what();
  }
  return answer;
}

Bytes answer_ops(const ServeCase& serve, const OpsRequest& request) {
  const cases::ServedCase one = serve(request.platform);
  switch (request.question) {
    case OpsQuestion::watch:
      return process::encode(bisect::watch_exchanged(one.setup, one.shape, request.exchanged));
    case OpsQuestion::results:
      return process::encode(bisect::results_of(one.setup, one.shape, request.exchanged));
    case OpsQuestion::twice: break;
  }
  return process::encode(answer_twice(one, serve(request.platform), request.second));
}

}  // namespace

OpsWorker::OpsWorker(std::vector<std::string> command, double timeout)
    : worker_({.words = std::move(command), .timeout = timeout}) {}

bisect::OpsAnswer OpsWorker::watch(const std::string& platform, const bisect::Ops& exchanged) {
  auto answer =
      ask<bisect::OpsAnswer>(worker_, asked_++, {OpsQuestion::watch, platform, exchanged, 0});
  if (const auto* death = std::get_if<Death>(&answer)) return {{}, death->why};
  return std::get<bisect::OpsAnswer>(std::move(answer));
}

std::vector<float> OpsWorker::results(const std::string& platform, const bisect::Ops& exchanged) {
  auto answer =
      ask<std::vector<float>>(worker_, asked_++, {OpsQuestion::results, platform, exchanged, 0});
  if (std::get_if<Death>(&answer) != nullptr) return {};
  return std::get<std::vector<float>>(std::move(answer));
}

TwiceAnswer OpsWorker::twice(const std::string& platform, std::size_t second) {
  auto answer = ask<TwiceAnswer>(worker_, asked_++, {OpsQuestion::twice, platform, {}, second});
  if (const auto* death = std::get_if<Death>(&answer)) return {{}, death->why};
  return std::get<TwiceAnswer>(std::move(answer));
}

int serve_ops(const ServeCase& serve) {
  return process::serve([&](const process::WorkerRequest& request) {
    return answer_ops(serve, process::decode<OpsRequest>(request.body));
  });
}

}  // namespace plumb::tools
