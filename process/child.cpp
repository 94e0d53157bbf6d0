// SPDX-License-Identifier: Apache-2.0
//
// posix_spawn cannot set PR_SET_PDEATHSIG, so children are forked. Between fork and exec the child
// only makes async-signal-safe calls, because another thread may have held any lock at the fork.
#include "process/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "process/fork.h"
#include "process/interrupts.h"

extern char** environ;

namespace plumb::process {

namespace {

// Longest time between two checks for signals, while this process waits for a child.
constexpr int kPollEvery = 20;  // milliseconds

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::vector<std::string> environment_of(const Command& command) {
  std::vector<std::string> all;
  for (const std::string& variable : command.environment) {
    if (variable.find('=') != std::string::npos) all.push_back(variable);
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool changed =
        std::any_of(command.environment.begin(), command.environment.end(),
                    [&](const std::string& v) { return name_of(v) == name_of(*entry); });
    if (!changed) all.emplace_back(*entry);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// A descriptor of the same file whose number is above those that the child uses itself (0 to
// kChannel): the given one if its number is above, else a copy.
int moved_up(int descriptor) {
  if (descriptor < 0 || descriptor > Child::kChannel) return descriptor;
  return fcntl(descriptor, F_DUPFD_CLOEXEC, Child::kChannel + 1);
}

bool redirect(const Redirection& stream, int target) {
  switch (stream.to) {
    case Redirection::To::inherited: return true;
    case Redirection::To::closed: return close(target) == 0 || errno == EBADF;
    case Redirection::To::descriptor: return dup2(stream.descriptor, target) == target;
    default: break;
  }
  const char* path = stream.to == Redirection::To::nothing ? "/dev/null" : stream.path.c_str();
  constexpr int kWritten = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND;
  const int opened = open(path, target == STDIN_FILENO ? O_RDONLY : kWritten, 0644);
  if (opened < 0 || opened == target) return opened >= 0;
  return dup2(opened, target) == target && close(opened) == 0;
}

// Data that the child needs, allocated before the fork.
struct Prepared {
  std::array<Redirection, 3> streams;
  const char* folder = nullptr;
  char* const* words = nullptr;
  char* const* environment = nullptr;
  const std::function<int()>* body = nullptr;
  bool own_group = true;
  int channel = -1, failure = -1;  // descriptors
  pid_t parent = 0;
};

bool set_up(Prepared& child) {
  if (child.own_group) setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != child.parent) _exit(127);  // the parent ended before the prctl call
  // An ignored signal stays ignored after exec. plumb ignores SIGPIPE and SIGXFSZ, and with an
  // ignored SIGCHLD the exit status of a child is lost.
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  signal(SIGCHLD, SIG_DFL);
  const int failure = moved_up(child.failure);
  if (failure != child.failure) close(child.failure);
  child.failure = failure;
  child.channel = moved_up(child.channel);
  for (Redirection& stream : child.streams) stream.descriptor = moved_up(stream.descriptor);
  for (int i = 0; i < 3; ++i) {
    if (!redirect(child.streams[static_cast<std::size_t>(i)], i)) return false;
  }
  if (child.folder != nullptr && chdir(child.folder) != 0) return false;
  return child.channel < 0 || dup2(child.channel, Child::kChannel) == Child::kChannel;
}

[[noreturn]] void become(Prepared& child) {
  bool ready = set_up(child);
  if (ready && child.body != nullptr) {
    close(child.failure);
    _exit((*child.body)());
  }
  if (ready) execvpe(child.words[0], child.words, child.environment);
  const int error = errno;
  static_cast<void>(!write(child.failure, &error, sizeof error));
  _exit(127);
}

// A descriptor that is closed at the end of the scope.
struct OpenDescriptor {
  int number = -1;
  ~OpenDescriptor() { reset(); }
  void reset() {
    if (number >= 0) close(std::exchange(number, -1));
  }
};

// errno of a child that failed before or in exec; 0 if the child has started. The child writes it
// to the pipe `from`, which exec closes.
int failure_of(int from) {
  int error = 0;
  ssize_t got = -1;
  do {
    got = read(from, &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  return got == sizeof error ? error : 0;
}

// Waits until the process has ended, for at most kPollEvery milliseconds, or 2 milliseconds if the
// system has no pidfd. A signal also ends the wait.
void wait_a_moment(pid_t process, Deadline deadline) {
  const int slice = deadline.milliseconds(kPollEvery);
  const OpenDescriptor ended{static_cast<int>(syscall(SYS_pidfd_open, process, 0))};
  pollfd readable{ended.number, POLLIN, 0};
  if (ended.number >= 0) {
    poll(&readable, 1, slice);
  } else {
    poll(nullptr, 0, std::min(slice, 2));
  }
}

}  // namespace

std::string Ending::text() const {
  if (signal != 0) return fmt::format("ended with signal {} ({})", signal, strsignal(signal));
  return fmt::format("ended with exit code {}", code);
}

Child::Child(const Command& command) { start(command, nullptr); }

Child::Child(const std::function<int()>& body, const Command& command) { start(command, body); }

Child::~Child() {
  if (id_ > 0) end();
}

void Child::start(const Command& command, const std::function<int()>& body) {
  std::vector<std::string> words = command.words, environment = environment_of(command);
  const std::vector<char*> words_of = pointers(words), environment_pointers = pointers(environment);
  Prepared child{{command.in, command.out, command.err}};
  child.folder = body || command.folder.empty() ? nullptr : command.folder.c_str();
  child.words = words_of.data();
  child.environment = environment_pointers.data();
  child.body = body ? &body : nullptr;
  child.own_group = own_group_ = command.own_group;
  child.parent = getpid();
  OpenDescriptor far, failure_read, failure_write;
  if (command.channel) {
    auto [near, other] = Channel::pair();
    channel_ = std::make_unique<Channel>(near);
    far.number = child.channel = other;
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  failure_read.number = ends[0];
  failure_write.number = child.failure = ends[1];
  id_ = fork_from_lasting_thread([&child] { become(child); });
  failure_write.reset();
  const int error = failure_of(failure_read.number);
  if (error == 0) return;
  end();
  throw std::system_error(error, std::generic_category(),
                          "cannot start " + (words.empty() ? "a process" : words.front()));
}

bool Child::has_ended() {
  if (ended_) return true;
  siginfo_t info = {};
  // WNOWAIT does not reap the process, so that its id is not reused while its group exists.
  if (waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    if (errno != ECHILD) return false;
    ended_ = true;  // reaped elsewhere in this process: the exit status is lost
    ending_ = Ending{127, 0};
    return true;
  }
  if (info.si_pid != id_) return false;
  ended_ = true;
  const bool exited = info.si_code == CLD_EXITED;
  ending_ = exited ? Ending{info.si_status, 0} : Ending{0, info.si_status};
  return true;
}

bool Child::wait(Deadline deadline, bool always) {
  while (!has_ended()) {
    if (!always) Interrupts::check();
    if (deadline.is_over()) return false;
    wait_a_moment(id_, deadline);
  }
  return true;
}

void Child::send_signal(int signal) const {
  if (id_ > 0) kill(own_group_ ? -id_ : id_, signal);
}

void Child::end(double seconds) {
  if (seconds > 0 && !has_ended()) {
    send_signal(SIGTERM);
    wait(Deadline::in(seconds), true);
  }
  send_signal(SIGKILL);
  release();
}

void Child::release() {
  wait(Deadline::never(), true);
  while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
  id_ = -1;
}

}  // namespace plumb::process
