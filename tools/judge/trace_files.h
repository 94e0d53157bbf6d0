// SPDX-License-Identifier: Apache-2.0
//
// Which files a trace has: of one step, of a rank's folder, or of a whole recording.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace plumb::tools {

// In the order of their names. Throws UsageError if there is none.
std::vector<std::string> files_of(const std::string& path);

// Hands over new files of steps while an engine records, each once: whole files only, because a
// recorder gives them their names when they are whole. Returns when every rank's folder has a file
// `finished`, after `idle` seconds without a new file (0: never), or after a signal
// (process::Interrupts). Waits for a folder that is not there. Throws UsageError for a single file.
void follow_files(const std::string& path, double idle,
                  const std::function<void(const std::vector<std::string>&)>& take);

}  // namespace plumb::tools
