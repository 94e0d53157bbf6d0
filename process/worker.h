// SPDX-License-Identifier: Apache-2.0
//
// Requests to a worker process and its answers. A worker is a program that is started with a
// channel: a crash, a hang or an answer that is none costs one request.
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
  std::uint64_t task = 0;  // counts the requests of one worker's owner, or is its task's number
  std::string name;        // of the case, for messages and as a check
  Bytes body;
};

struct WorkerAnswer {
  std::uint64_t task = 0;
  std::string name;
  std::int64_t process = 0;     // that answers
  std::string error;            // why there is no body
  bool left_a_process = false;  // forked during the request, and the copy was not waited for
  Bytes body;
};

// Why there is no answer: "its process ended with signal 11 (Segmentation fault)".
struct Death {
  std::string why;
  bool timed_out = false;  // it had to be ended
};

// No worker process can be started: too many descriptors, processes, too little memory.
class CannotStart : public std::system_error {
 public:
  using std::system_error::system_error;
};

// How a worker is started and how long it may take.
struct WorkerOptions {
  std::vector<std::string> words;  // the program and its arguments
  std::string role = "worker";     // which the program asks for with worker_role()
  double timeout = 0;              // seconds for a request and its answer; 0: none
  double start_timeout = 120;      // seconds until it is ready for the first request; 0: none
  double end_timeout = 5;          // seconds from the end of its channel to the end of its process
  std::vector<std::string> environment = {};  // NAME=value adds or replaces
};

// The parent's side. Not for several threads at once.
class Worker {
 public:
  explicit Worker(WorkerOptions options) : options_(std::move(options)) {}

  // Starts a process if there is none, also after a death. Throws CannotStart, Interrupted.
  std::variant<Bytes, Death> run(const WorkerRequest& request);
  // Starts the process without a request. Throws CannotStart.
  void start();
  // The next request gets a fresh process: after a fault, a real device's state is not to be
  // trusted.
  void retire() { child_.reset(); }
  // The answer to the last request could not be read: retires the worker.
  Death refuse(std::string_view why);

 private:
  std::optional<Death> greet();
  std::variant<Bytes, Death> converse(const WorkerRequest& request);
  std::variant<Bytes, Death> receive(const WorkerRequest& request, Deadline deadline);
  Death bury(Got got, Deadline deadline);

  WorkerOptions options_;
  std::optional<Child> child_;
  bool greeted_ = false;
  std::string last_;  // name of the request that this process has answered last
};

// The worker's side. The role that this process was started in; "" if it was not started as a
// worker. Throws NotAWorker if the environment says that it is one and descriptor 3 does not.
std::string worker_role();
inline bool is_worker() { return !worker_role().empty(); }
class NotAWorker : public std::runtime_error {
 public:
  NotAWorker();
};

// Answers requests until the parent hangs up; returns the exit code. An exception of `answer` is
// sent in place of the body, and ends the process.
int serve(const std::function<Bytes(const WorkerRequest&)>& answer);

}  // namespace plumb::process
