// SPDX-License-Identifier: Apache-2.0
#include "process/worker.h"

#include <fmt/format.h>

#include <utility>

#include "process/interrupts.h"
#include "process/messages.h"

namespace plumb::process {

void Worker::start() {
  if (child_) return;
  Command command{options_.words};
  command.channel = true;
  command.environment = options_.environment;
  command.environment.push_back(fmt::format("{}={}", kWorkerVariable, Child::kChannel));
  try {
    child_.emplace(command);
  } catch (const std::system_error& error) {
    throw CannotStart(error.code(), "cannot start a worker process");
  }
  greeted_ = false;
  last_.clear();
  child_->channel().watch([this] { return child_->has_ended(); });
  const Hello hello{.role = options_.role};
  child_->channel().send(encode(hello), Deadline::in(options_.start_timeout));
}

// Waits until a new worker is ready.
std::optional<Death> Worker::greet() {
  if (greeted_) return std::nullopt;
  const Deadline deadline = Deadline::in(options_.start_timeout);
  Bytes message;
  const Got got = child_->channel().receive(message, deadline);
  if (got == Got::timed_out) {
    retire();
    return Death{
        fmt::format("it was not ready after {:g} s; its process was ended", options_.start_timeout),
        true};
  }
  if (got != Got::message) return bury(got, deadline);
  try {
    const auto ready = decode<Ready>(message);
    greeted_ = ready.protocol == kProtocol && ready.process == child_->id();
  } catch (const BadMessage& error) {
    return refuse(error.what());
  }
  if (!greeted_) return refuse("it is another program");
  return std::nullopt;
}

std::variant<Bytes, Death> Worker::run(const WorkerRequest& request) {
  start();
  auto answer = [&]() -> std::variant<Bytes, Death> {
    if (auto death = greet()) return *death;
    return converse(request);
  }();
  // A signal to this process may have ended the worker too: then report the signal, not the death.
  if (std::get_if<Death>(&answer) != nullptr) Interrupts::check();
  return answer;
}

std::variant<Bytes, Death> Worker::converse(const WorkerRequest& request) {
  if (child_->has_ended() && !last_.empty()) {
    const Ending ending = child_->ending();
    retire();
    return Death{fmt::format("its process {} after it had answered {}", ending.text(), last_)};
  }
  const Deadline deadline = Deadline::in(options_.timeout);
  const Got sent = child_->channel().send(encode(request), deadline);
  if (sent != Got::message) return bury(sent, deadline);
  return receive(request, deadline);
}

std::variant<Bytes, Death> Worker::receive(const WorkerRequest& request, Deadline deadline) {
  while (true) {
    Bytes message;
    const Got got = child_->channel().receive(message, deadline);
    if (got != Got::message) return bury(got, deadline);
    WorkerAnswer answer;
    try {
      answer = decode<WorkerAnswer>(message);
    } catch (const BadMessage& error) {
      return refuse(error.what());
    }
    // Ignore an answer of another process: a copy of the worker that a kernel has forked sent it.
    if (answer.process != child_->id()) continue;
    if (answer.task != request.task || answer.name != request.name) {
      return refuse("the answer to another request");
    }
    if (!answer.error.empty()) {
      retire();
      return Death{answer.error};
    }
    if (answer.left_a_process) {
      retire();
      return Death{"it forked and did not wait for the new process"};
    }
    last_ = answer.name;
    return std::move(answer.body);
  }
}

Death Worker::refuse(std::string_view why) {
  retire();
  return {fmt::format("its process answered nonsense: {}", why)};
}

Death Worker::bury(Got got, Deadline deadline) {
  if (got == Got::nonsense) return refuse("no message of a worker");
  const bool hung_up = got == Got::hung_up;
  const Deadline end = deadline.or_earlier(Deadline::in(options_.end_timeout));
  const bool ended = hung_up ? child_->wait(end) : child_->has_ended();
  const Ending ending = child_->ending();
  retire();
  if (ended) return {"its process " + ending.text()};
  if (hung_up) return {"it closed its channel and did not end; its process was ended", true};
  return {fmt::format("no result after {:g} s; its process was ended", options_.timeout), true};
}

}  // namespace plumb::process
