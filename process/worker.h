// SPDX-License-Identifier: Apache-2.0
//
// Requests to a worker process and its answers. A worker is a program that is started with a
// channel. A crash, a hang or an invalid answer costs only one request.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

#include "process/child.h"

namespace plumb::process {

struct WorkerRequest {
  std::uint64_t task = 0;  // request or task number, chosen by the worker's owner
  std::string name;        // name of the case, for messages and as a check of the answer
  Bytes body;
};

struct WorkerAnswer {
  std::uint64_t task = 0;
  std::string name;
  std::int64_t process = 0;     // id of the process that answers
  std::string error;            // why the body is missing
  bool left_a_process = false;  // a process was forked during the request and not waited for
  Bytes body;
};

// Why a worker gave no answer, such as "its process ended with signal 11 (Segmentation fault)".
struct Death {
  std::string why;
  bool timed_out = false;  // it exceeded its time and was killed
};

// A worker process cannot be started: too many descriptors or processes, or too little memory.
class CannotStart : public std::system_error {
 public:
  using std::system_error::system_error;
};

// How a worker is started and how long it may take.
struct WorkerOptions {
  std::vector<std::string> words;  // the program and its arguments
  std::string role = "worker";     // returned by worker_role() in the program
  double timeout = 0;              // seconds for a request and its answer; 0: none
  double start_timeout = 120;      // seconds until the worker is ready for a request; 0: no limit
  double end_timeout = 5;          // seconds for the process to end after its channel is closed
  std::vector<std::string> environment = {};  // NAME=value adds or replaces
};

// The parent's side of a worker. Not thread-safe.
class Worker {
 public:
  explicit Worker(WorkerOptions options) : options_(std::move(options)) {}

  // Sends a request and returns the answer. Starts a process if none is running, also after a
  // death. Throws CannotStart, Interrupted.
  std::variant<Bytes, Death> run(const WorkerRequest& request);
  // Starts the process without a request. Throws CannotStart.
  void start();
  // Ends the process, so that the next request gets a fresh one: after a fault, the state of a real
  // device cannot be trusted.
  void retire() { child_.reset(); }
  // Call this if the answer to the last request cannot be decoded. Retires the worker.
  Death refuse(std::string_view why);

 private:
  std::optional<Death> greet();
  std::variant<Bytes, Death> converse(const WorkerRequest& request);
  std::variant<Bytes, Death> receive(const WorkerRequest& request, Deadline deadline);
  Death bury(Got got, Deadline deadline);

  WorkerOptions options_;
  std::optional<Child> child_;
  bool greeted_ = false;
  std::string last_;  // name of the request that this process answered last
};

// The worker's side: the role in which this process was started, or "" if it is not a worker.
// Throws NotAWorker if the environment says that it is a worker but descriptor 3 is not its
// channel.
std::string worker_role();
inline bool is_worker() { return !worker_role().empty(); }
class NotAWorker : public std::runtime_error {
 public:
  NotAWorker();
};

// Answers requests until the parent closes the channel, and returns the exit code. An exception of
// `answer` is sent instead of the body and ends the process.
int serve(const std::function<Bytes(const WorkerRequest&)>& answer);

}  // namespace plumb::process
