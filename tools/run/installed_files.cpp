// SPDX-License-Identifier: Apache-2.0
#include "tools/run/installed_files.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "golden/git.h"
#include "process/own_program.h"

namespace plumb::tools {

namespace {

// Written by cmake/write_commit.cmake. "unknown" for anything else than the name of a commit.
std::string commit_in(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const auto digits = line.find_first_not_of("0123456789abcdef");
  const bool is_commit =
      line.size() >= 40 && (digits == std::string::npos || line.substr(digits) == "+");
  return is_commit ? line : "unknown";
}

}  // namespace

std::string installed_files() {
  std::error_code error;
  const auto program = std::filesystem::canonical(process::own_program(), error);
  if (error) return "";
  const auto files = program.parent_path().parent_path() / "share" / "plumb";
  return std::filesystem::is_directory(files, error) ? files.string() : "";
}

std::string own_commit() {
  const std::string files = installed_files();
  return files.empty() ? golden::commit_of(PLUMB_SOURCE) : commit_in(files + "/commit.txt");
}

}  // namespace plumb::tools
