// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/process.h"

#include <stdlib.h>

#include <cerrno>
#include <system_error>

namespace plumb::bisect {

Ended run_process(const ProcessCommand& command) {
  process::Command started{command.words, command.folder, command.environment};
  // They would lead git, wherever it is called, to the repository whose hook has called plumb.
  started.environment.insert(started.environment.end(),
                             {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
                              "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE"});
  return process::run_to_end(started, {command.timeout, command.always});
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
