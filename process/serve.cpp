// SPDX-License-Identifier: Apache-2.0
//
// The worker's side of the channel.
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>

#include "process/fork.h"
#include "process/messages.h"

namespace plumb::process {

namespace {

std::atomic<int> all_forks = 0;

// Number of forks that were not made by this library.
int foreign_forks() { return all_forks - lasting_forks(); }

// True if a process was forked since `forks_before` and not waited for. Programs started by
// posix_spawn do not count.
bool left_a_process(int forks_before) {
  if (foreign_forks() == forks_before) return false;
  siginfo_t info = {};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool is_socket(int descriptor) {
  int domain = 0;
  socklen_t size = sizeof domain;
  return getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

// True if the environment says that descriptor 3 leads to a parent. Throws NotAWorker if that is
// not true.
bool has_parent() {
  const char* variable = std::getenv(kWorkerVariable);
  if (variable == nullptr) return false;
  if (variable != std::to_string(Child::kChannel) || !is_socket(Child::kChannel)) {
    throw NotAWorker();
  }
  unsetenv(kWorkerVariable);
  return true;
}

Channel& channel() {
  static Channel channel(Child::kChannel);
  return channel;
}

std::string receive_role() {
  if (!has_parent()) return "";
  try {
    Bytes message;
    // The parent sends its Hello as soon as it has started this process.
    if (channel().receive(message, Deadline::in(10)) != Got::message) throw NotAWorker();
    const auto hello = decode<Hello>(message);
    if (hello.program == Hello{}.program && hello.protocol == kProtocol) return hello.role;
  } catch (const BadMessage&) {
  }
  throw NotAWorker();
}

WorkerAnswer answer_to(const WorkerRequest& request,
                       const std::function<Bytes(const WorkerRequest&)>& answer) {
  WorkerAnswer sent{request.task, request.name, 0, "", false, {}};
  const int before = foreign_forks();
  try {
    sent.body = answer(request);
  } catch (const std::bad_alloc&) {
    sent.error = "not enough memory in its process";
  } catch (const std::exception& error) {
    sent.error = error.what();
    if (sent.error.empty()) sent.error = "an exception without a text";
  }
  sent.left_a_process = left_a_process(before);
  sent.process = getpid();
  return sent;
}

}  // namespace

NotAWorker::NotAWorker()
    : std::runtime_error(std::string(kWorkerVariable) +
                         " is set, but this process was not started as a worker: unset it") {}

std::string worker_role() {
  static const std::string role = receive_role();
  return role;
}

int serve(const std::function<Bytes(const WorkerRequest&)>& answer) {
  pthread_atfork(nullptr, [] { ++all_forks; }, nullptr);
  const pid_t self = getpid();
  const Ready ready{.process = self};
  if (channel().send(encode(ready), Deadline::never()) != Got::message) return 0;
  Bytes message;
  while (channel().receive(message, Deadline::never()) == Got::message) {
    const WorkerAnswer sent = answer_to(decode<WorkerRequest>(message), answer);
    // A process that a kernel has forked must not answer requests.
    if (getpid() != self) _exit(1);
    if (channel().send(encode(sent), Deadline::never()) != Got::message) break;
    if (!sent.error.empty()) return 2;
  }
  return 0;
}

}  // namespace plumb::process
