// SPDX-License-Identifier: Apache-2.0
//
// Parent and worker share a socket. A task is 8 bytes, an answer 8 bytes of length and the bytes.
#include "tools/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>

extern char** environ;

namespace plumb::tools {

namespace {

constexpr const char* kVariable = "PLUMB_WORKER_CHANNEL";
constexpr int kWorkerDescriptor = 3;
constexpr std::uint64_t kLongestAnswer = std::uint64_t{1} << 32;

using Clock = std::chrono::steady_clock;

enum class Got { all, hung_up, timed_out };

// Reads exactly `bytes`; `deadline` == max: waits for ever.
Got read_all(int channel, void* to, std::size_t bytes, Clock::time_point deadline) {
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    int wait = -1;
    if (deadline != Clock::time_point::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) return Got::timed_out;
      wait = static_cast<int>(std::min<std::int64_t>(left.count(), 1 << 30));
    }
    pollfd ready{channel, POLLIN, 0};
    const int polled = poll(&ready, 1, wait);
    if (polled < 0 && errno != EINTR) return Got::hung_up;
    if (polled <= 0) continue;
    const ssize_t got = recv(channel, out, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Got::hung_up;
    out += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return Got::all;
}

bool send_all(int channel, const void* from, std::size_t bytes) {
  const auto* in = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = send(channel, in, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    in += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

// The environment of a worker: the parent's and the variable that makes it one.
std::vector<std::string> worker_environment() {
  std::vector<std::string> environment{fmt::format("{}={}", kVariable, kWorkerDescriptor)};
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

std::vector<std::string> own_command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size(); at += words.back().size() + 1) {
    words.emplace_back(text.c_str() + at);
  }
  if (words.empty()) throw std::runtime_error("/proc/self/cmdline cannot be read");
  words.front() = "/proc/self/exe";
  return words;
}

Worker::Worker(std::vector<std::string> command, double timeout)
    : command_(std::move(command)), timeout_(timeout) {}

Worker::~Worker() { retire(); }

void Worker::start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  // dup2 onto itself would keep close-on-exec: a descriptor that is in the way moves first.
  if (ends[1] == kWorkerDescriptor) {
    ends[1] = fcntl(ends[1], F_DUPFD_CLOEXEC, kWorkerDescriptor + 1);
    close(kWorkerDescriptor);
  }
  posix_spawn_file_actions_adddup2(&files, ends[1], kWorkerDescriptor);
  std::vector<std::string> environment = worker_environment();
  const int error = posix_spawn(&process_, command_.front().c_str(), &files, nullptr,
                                pointers(command_).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]);
  channel_ = ends[0];
  if (error == 0) return;
  process_ = -1;
  retire();
  throw std::system_error(error, std::generic_category(), "cannot start a worker process");
}

void Worker::retire() {
  if (channel_ >= 0) close(channel_);
  channel_ = -1;
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

Death Worker::bury(bool timed_out) {
  if (timed_out) {
    retire();
    return {fmt::format("no result after {:g} s; its process was ended", timeout_), true};
  }
  int status = 0;
  waitpid(process_, &status, 0);
  process_ = -1;
  retire();
  if (WIFSIGNALED(status)) {
    return {fmt::format("its process ended with signal {} ({})", WTERMSIG(status),
                        strsignal(WTERMSIG(status)))};
  }
  return {fmt::format("its process ended with exit code {}", WEXITSTATUS(status))};
}

std::variant<Bytes, Death> Worker::run(std::uint64_t task) {
  if (process_ < 0) start();
  const auto deadline = timeout_ > 0 ? Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                          std::chrono::duration<double>(timeout_))
                                     : Clock::time_point::max();
  if (!send_all(channel_, &task, sizeof task)) return bury(false);
  std::uint64_t length = 0;
  Got got = read_all(channel_, &length, sizeof length, deadline);
  if (got == Got::all && length > kLongestAnswer) {
    retire();
    return Death{"it answered nonsense"};
  }
  Bytes answer(got == Got::all ? length : 0);
  if (got == Got::all) got = read_all(channel_, answer.data(), answer.size(), deadline);
  if (got != Got::all) return bury(got == Got::timed_out);
  return answer;
}

bool is_worker() { return std::getenv(kVariable) != nullptr; }

int serve(const std::function<Bytes(std::uint64_t task)>& answer) {
  // A parent that was killed cannot end a worker whose kernel never ends.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  unsetenv(kVariable);
  const auto forever = Clock::time_point::max();
  std::uint64_t task = 0;
  while (read_all(kWorkerDescriptor, &task, sizeof task, forever) == Got::all) {
    const Bytes bytes = answer(task);
    const std::uint64_t length = bytes.size();
    if (!send_all(kWorkerDescriptor, &length, sizeof length) ||
        !send_all(kWorkerDescriptor, bytes.data(), bytes.size())) {
      break;
    }
  }
  return 0;
}

}  // namespace plumb::tools
