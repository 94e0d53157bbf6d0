// SPDX-License-Identifier: Apache-2.0
//
// Another program, run to its end in a process group of its own: builds, git, plumb itself. Ctrl-C
// ends it and whatever it has started.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace plumb::bisect {

// Ctrl-C, or a request to end, while an Interrupts is alive.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// While one is alive, SIGINT, SIGTERM and SIGHUP make run_process throw Interrupted instead of
// ending this process, so that what was made on the way is cleared away.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  static void check();  // throws Interrupted
};

struct Command {
  std::vector<std::string> words;        // the program and its arguments
  std::string folder = {};               // "": this process's
  std::vector<std::string> environment;  // NAME=value, beside this process's variables
  double timeout = 0;                    // seconds; 0: none
  bool always = false;                   // clears away: also after an interrupt
};

struct Ended {
  int code = 0;    // exit code, if no signal
  int signal = 0;  // that ended it; 0: none
  bool timed_out = false;
  double seconds = 0;
  std::string out, err;  // what it printed

  bool ok() const { return code == 0 && signal == 0 && !timed_out; }
  // "ended with exit code 2", "ended with signal 11 (Segmentation fault)", "no result after 5 s"
  std::string how() const;
};

// Standard input is empty. Variables with which git tells its hooks where they are do not reach the
// program. Throws std::system_error if it cannot be started.
Ended run_process(const Command& command);

// A word as a POSIX shell reads it back.
std::string shell_quoted(const std::string& word);

// A folder of its own under the system's folder for temporary files; removed at the end.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace plumb::bisect
