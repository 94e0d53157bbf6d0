// SPDX-License-Identifier: Apache-2.0
//
// Finds the files of a trace: a single file, a rank's folder, or a whole recording.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace plumb::tools {

// Sorted by name. Throws UsageError if there is no file.
std::vector<std::string> files_of(const std::string& path);

// Passes new step files to `take` while an engine records, each once. A recorder renames a file
// when it is complete, so all are complete. Returns when the recording's folder, or the folder of
// every rank in it, has a file `finished`, after `idle` seconds without a new file (0: no limit),
// or after a signal (process::Interrupts). Waits for a folder that does not exist yet. Throws
// UsageError for a single file.
void follow_files(const std::string& path, double idle,
                  const std::function<void(const std::vector<std::string>&)>& take);

}  // namespace plumb::tools
