// SPDX-License-Identifier: Apache-2.0
//
// The few things that a store does to files. Virtual, so that a test can let the power fail at any
// of them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plumb::golden {

// Exclusive lock on a golden folder. Readers need none. Throws GoldenError if another process or
// object holds it. Makes a missing folder, and removes it again if it stays empty.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::vector<std::string> made_;  // folders, innermost first
  int descriptor_;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // The whole file, or as much as a caller cares to know of one that is longer than `most`: throws
  // GoldenError. Nothing if there is no file of this name. Links are not followed.
  virtual std::optional<std::vector<std::byte>> read(const std::string& path,
                                                     std::size_t most) const;
  // Makes or replaces the file and waits until it is on the disk.
  virtual void write(const std::string& path, std::span<const std::byte> bytes);
  virtual void rename(const std::string& from, const std::string& to);
  virtual void remove(const std::string& path);
  virtual void make_folder(const std::string& path);
  // Until then a rename in it may be undone by a crash.
  virtual void sync_folder(const std::string& path);
};

}  // namespace plumb::golden
