// SPDX-License-Identifier: Apache-2.0
//
// A worker that does what the name of a request says: it answers, dies in several ways, or does not
// answer at all.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <new>
#include <stdexcept>
#include <string>

#include "process/worker.h"

namespace {

using plumb::process::Bytes;
using plumb::process::Child;
using plumb::process::WorkerRequest;

[[noreturn]] void hang() {
  while (true) pause();
}

void write_raw(const std::string& text) {
  static_cast<void>(!write(Child::kChannel, text.data(), text.size()));
}

// Forks. Both processes return an answer, and the child's comes first.
Bytes fork_and_return() {
  if (fork() == 0) return {99};
  usleep(100'000);
  return {1};
}

// Forks and dies. The child lives on and keeps its end of the channel open.
[[noreturn]] void fork_and_die() {
  if (fork() == 0) {
    sleep(30);
    _exit(0);
  }
  std::raise(SIGSEGV);
  hang();
}

const std::map<std::string, std::function<Bytes()>> kTasks = {
    {"crash",
     []() -> Bytes {
       std::raise(SIGSEGV);
       hang();
     }},
    {"exit", []() -> Bytes { std::_Exit(3); }},
    {"hang", []() -> Bytes { hang(); }},
    {"throw", []() -> Bytes { throw std::runtime_error("on purpose"); }},
    {"no memory", []() -> Bytes { throw std::bad_alloc(); }},
    {"much", [] { return Bytes(3 << 20, 7); }},
    {"close",
     []() -> Bytes {
       close(Child::kChannel);
       hang();
     }},
    {"shut down",
     []() -> Bytes {
       shutdown(Child::kChannel, SHUT_RDWR);
       hang();
     }},
    {"nonsense",
     []() -> Bytes {
       write_raw("hello");
       hang();
     }},
    {"long",
     []() -> Bytes {
       write_raw("PLMB\xff\xff\xff\xff\xff\xff\xff\xff");
       hang();
     }},
    {"no struct",
     []() -> Bytes {
       write_raw(std::string("PLMB\1\0\0\0\0\0\0\0\1", 13));
       hang();
     }},
    {"fork", fork_and_return},
    {"fork and die", []() -> Bytes { fork_and_die(); }},
    {"die later",
     [] {
       std::atexit([] {});
       alarm(1);
       return Bytes{1};
     }},
};

Bytes answer(const WorkerRequest& request) {
  if (request.name == "process") {
    const std::string id = std::to_string(getpid());
    return {id.begin(), id.end()};
  }
  const auto task = kTasks.find(request.name);
  if (task != kTasks.end()) return task->second();
  return {static_cast<std::uint8_t>(request.task + 1)};
}

// A program that starts another one and waits.
int parent() {
  const Child child({{"sleep", "300"}});
  const std::string line = std::to_string(child.id()) + "\n";
  static_cast<void>(!write(STDOUT_FILENO, line.data(), line.size()));
  hang();
}

}  // namespace

int main(int count, char**) {
  try {
    if (count > 1) return parent();
    const std::string role = plumb::process::worker_role();
    if (role.empty()) return 9;
    if (role == "never ready") hang();
    return plumb::process::serve(answer);
  } catch (const plumb::process::NotAWorker&) {
    return 8;
  }
}
