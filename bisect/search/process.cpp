// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <thread>

extern char** environ;

namespace plumb::bisect {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t interrupted_by = 0;
std::array<struct sigaction, kSignals.size()> before;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// They would lead git, wherever it is called, to the repository whose hook has called plumb.
bool points_git_elsewhere(std::string_view name) {
  constexpr std::array<std::string_view, 7> kNames = {
      "GIT_DIR",        "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
      "GIT_COMMON_DIR", "GIT_PREFIX",    "GIT_NAMESPACE"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::vector<std::string> environment_of(const Command& command) {
  std::vector<std::string> all = command.environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name = name_of(*entry);
    const bool replaced =
        std::any_of(command.environment.begin(), command.environment.end(),
                    [&](const std::string& variable) { return name_of(variable) == name; });
    if (!replaced && !points_git_elsewhere(name)) all.emplace_back(*entry);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

pid_t start(const Command& command, const std::filesystem::path& outputs) {
  std::vector<std::string> words = command.words, environment = environment_of(command);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (!command.folder.empty()) {
    posix_spawn_file_actions_addchdir_np(&files, command.folder.c_str());
  }
  constexpr int kNew = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND;
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, (outputs / "out").c_str(), kNew, 0600);
  posix_spawn_file_actions_addopen(&files, 2, (outputs / "err").c_str(), kNew, 0600);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A program is not to inherit that plumb ignores SIGPIPE.
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t process = -1;
  const int error = posix_spawnp(&process, words.front().c_str(), &files, &attributes,
                                 pointers(words).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error == 0) return process;
  throw std::system_error(error, std::generic_category(), "cannot start " + command.words.front());
}

bool has_ended(pid_t process, int& status) { return waitpid(process, &status, WNOHANG) == process; }

// Politely first: a compiler removes what it has half written.
void end_group(pid_t process) {
  int status = 0;
  kill(-process, SIGTERM);
  for (int i = 0; i < 200 && !has_ended(process, status); ++i) {
    std::this_thread::sleep_for(milliseconds(10));
    if (i == 199) {
      kill(-process, SIGKILL);
      waitpid(process, &status, 0);
    }
  }
  kill(-process, SIGKILL);  // whoever is left of its group
}

// A file that can be read once the process has ended; -1 where the kernel has none.
class EndOfProcess {
 public:
  explicit EndOfProcess(pid_t process)
      : file_(static_cast<int>(syscall(SYS_pidfd_open, process, 0))) {}
  ~EndOfProcess() {
    if (file_ >= 0) close(file_);
  }
  EndOfProcess(const EndOfProcess&) = delete;
  EndOfProcess& operator=(const EndOfProcess&) = delete;

  // For a moment, or less: a signal wakes it too.
  void wait() const {
    pollfd ended{file_, POLLIN, 0};
    if (file_ >= 0) {
      poll(&ended, 1, 20);
    } else {
      std::this_thread::sleep_for(milliseconds(2));
    }
  }

 private:
  int file_;
};

// Its status, unless it took too long.
bool wait_for(pid_t process, const Command& command, int& status) {
  const Clock::time_point started = Clock::now();
  const EndOfProcess end(process);
  while (!has_ended(process, status)) {
    if (interrupted_by != 0 && !command.always) {
      end_group(process);
      Interrupts::check();
    }
    if (command.timeout > 0 && seconds_since(started) > command.timeout) {
      end_group(process);
      return false;
    }
    end.wait();
  }
  return true;
}

}  // namespace

Interrupts::Interrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) { interrupted_by = signal; };
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before[i]);
}

Interrupts::~Interrupts() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
  interrupted_by = 0;
}

void Interrupts::check() {
  if (interrupted_by != 0) {
    throw Interrupted(fmt::format("stopped by signal {} ({})", static_cast<int>(interrupted_by),
                                  strsignal(interrupted_by)));
  }
}

std::string Ended::how() const {
  if (timed_out) return fmt::format("no result after {:.3g} s", seconds);
  if (signal != 0) return fmt::format("ended with signal {} ({})", signal, strsignal(signal));
  return fmt::format("ended with exit code {}", code);
}

Ended run_process(const Command& command) {
  if (!command.always) Interrupts::check();
  const TemporaryFolder outputs("plumb-process");
  const Clock::time_point started = Clock::now();
  const pid_t process = start(command, outputs.path());
  Ended ended;
  int status = 0;
  ended.timed_out = !wait_for(process, command, status);
  ended.seconds = seconds_since(started);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  ended.out = contents(outputs.path() / "out");
  ended.err = contents(outputs.path() / "err");
  return ended;
}

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

TemporaryFolder::TemporaryFolder(const std::string& name) {
  std::string pattern = (std::filesystem::temp_directory_path() / (name + "-XXXXXX")).string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "cannot make a folder " + pattern);
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace plumb::bisect
