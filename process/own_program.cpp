// SPDX-License-Identifier: Apache-2.0
#include "process/own_program.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <filesystem>

namespace plumb::process {

namespace {

std::vector<std::string>& remembered() {
  static std::vector<std::string> words;
  return words;
}

}  // namespace

void remember_command_line(int count, char** words) {
  remembered().assign(words, words + count);
  if (remembered().empty()) remembered().emplace_back();
  remembered().front() = own_program();
}

std::string own_program() {
  // /proc/self/exe names the running program even if another file has its path by now.
  static const std::string program = [] {
    constexpr const char* kLink = "/proc/self/exe";
    if (access(kLink, X_OK) == 0) return std::string(kLink);
    const auto* started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    std::error_code unknown_folder;
    const auto path = std::filesystem::absolute(started ? started : "plumb", unknown_folder);
    return path.string();
  }();
  return program;
}

std::vector<std::string> own_command_line() { return remembered(); }

}  // namespace plumb::process
