// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace plumb::process {

// A new folder under the system's folder for temporary files. The destructor removes it. A killed
// process leaves its folder behind. A TemporaryFolder with the same name, made by the same user at
// least a minute later, removes it.
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
  // Descriptor of the folder, locked as long as this process or a forked copy keeps it open.
  int lock_ = -1;
};

}  // namespace plumb::process
