// SPDX-License-Identifier: Apache-2.0
#include "bisect/search/process.h"

namespace plumb::bisect {

Ended run_process(const ProcessCommand& command) {
  process::Command started{command.words, command.folder, command.environment};
  // Unset: these variables would make git use, in every folder, the repository whose hook called
  // plumb.
  started.environment.insert(started.environment.end(),
                             {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
                              "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE"});
  return process::run_to_end(started, {command.timeout, command.always});
}

}  // namespace plumb::bisect
