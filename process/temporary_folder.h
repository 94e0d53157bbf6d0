// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace plumb::process {

// A folder of its own under the system's folder for temporary files; removed at the end. A process
// that is killed leaves its folder: the next one of the same name removes it.
class TemporaryFolder {
 public:
  // Throws std::system_error.
  explicit TemporaryFolder(const std::string& name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;  // held while somebody uses the folder, children included
};

}  // namespace plumb::process
