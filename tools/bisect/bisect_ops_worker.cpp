// SPDX-License-Identifier: Apache-2.0
#include "tools/bisect/bisect_ops_worker.h"

#include <utility>

#include "bisect/ops/step_ops.h"
#include "tools/bisect/bisect_ops_codec.h"
#include "tools/plugin.h"

namespace plumb::tools {

namespace {

using process::Bytes;
using process::Death;

struct EndOfPlugins {
  EndOfPlugins() = default;
  EndOfPlugins(const EndOfPlugins&) = delete;
  EndOfPlugins& operator=(const EndOfPlugins&) = delete;
  ~EndOfPlugins() { end_plugin_processes(); }
};

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
      return process::encode(
          bisect::results_of(bisect::with_exchanged(one.setup, request.exchanged), one.shape));
    case OpsQuestion::twice: break;
  }
  return process::encode(answer_twice(one, serve(request.platform), request.second));
}

bisect::OpsAnswer watch_plugin(const cases::StepPlugin& plugin, const cases::ServedCase& one) {
  try {
    return {cases::watch_with(plugin, one.setup, one.shape).findings, "", ""};
  } catch (const cases::NotOnThisPlatform& why) {
    return {{}, "", why.what()};
  }
}

Bytes answer_ops(const ServeCase& serve, const std::string& path, const OpsRequest& request) {
  cases::StepPlugin plugin = step_plugin_process(path);
  plugin.left_out = request.exchanged;
  cases::ServedCase one = serve(request.platform);
  if (request.question == OpsQuestion::watch) return process::encode(watch_plugin(plugin, one));
  put_in(plugin, one.setup);
  if (request.question == OpsQuestion::results) {
    return process::encode(bisect::results_of(one.setup, one.shape));
  }
  cases::ServedCase again = serve(request.platform);
  put_in(plugin, again.setup);
  return process::encode(answer_twice(one, again, request.second));
}

}  // namespace

OpsWorker::OpsWorker(std::vector<std::string> command, double timeout)
    : worker_({.words = std::move(command), .timeout = timeout}) {}

bisect::OpsAnswer OpsWorker::watch(const std::string& platform, const bisect::Ops& exchanged) {
  auto answer =
      ask<bisect::OpsAnswer>(worker_, asked_++, {OpsQuestion::watch, platform, exchanged, 0});
  if (const auto* death = std::get_if<Death>(&answer)) return {{}, death->why, ""};
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

int serve_ops(const ServeCase& serve, const std::string& plugin) {
  return process::serve([&](const process::WorkerRequest& request) {
    const auto asked = process::decode<OpsRequest>(request.body);
    if (plugin.empty()) return answer_ops(serve, asked);
    // A failed kernel may have left the plug-in's process in any state.
    const EndOfPlugins end;
    return answer_ops(serve, plugin, asked);
  });
}

}  // namespace plumb::tools
