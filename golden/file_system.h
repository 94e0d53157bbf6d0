// SPDX-License-Identifier: Apache-2.0
//
// File operations of a store. They are virtual, so that a test can simulate a power failure at any
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
  std::vector<std::string> made_;  // created folders, innermost first
  int descriptor_;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Contents of the file. Throws GoldenError if it is longer than `most`. nullopt if there is no
  // such file. Does not follow links.
  virtual std::optional<std::vector<std::byte>> read(const std::string& path,
                                                     std::size_t most) const;
  // Creates or replaces the file and waits until it is on disk.
  virtual void write(const std::string& path, std::span<const std::byte> bytes);
  virtual void rename(const std::string& from, const std::string& to);
  virtual void remove(const std::string& path);
  virtual void make_folder(const std::string& path);
  // Makes renames in the folder durable. Before this call a crash may undo them.
  virtual void sync_folder(const std::string& path);
};

}  // namespace plumb::golden
