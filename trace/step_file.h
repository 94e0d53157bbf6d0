// SPDX-License-Identifier: Apache-2.0
//
// The HDF5 files of a trace (docs/traces.md): the data set `step`, a JSON text, and in the group
// `data` the bytes of tensors, each under its digest.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace plumb::trace {

using StepData = std::map<std::string, std::span<const std::byte>>;  // key: digest

// Writes `path` completely or not at all. Throws BadTrace: "path: why".
void write_step_file(const std::string& path, const std::string& text, const StepData& data);

// Owner of bytes of a file: mapped pages if possible, else a buffer.
struct BytesOwner {
  virtual ~BytesOwner() = default;
  // Drops mapped pages from memory. They are read again on the next access.
  virtual void leave_memory() const {}
};

struct StoredBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const BytesOwner> owner;  // null if there are no bytes
};

// Reads a file without trusting its contents. HDF5 itself may crash on a malicious file, so use
// this in a process that may crash. Not thread-safe.
class StepFile {
 public:
  // Throws BadTrace if the file is not part of a trace.
  explicit StepFile(std::string path);
  ~StepFile();

  const std::string& path() const { return path_; }
  std::string text() const;
  bool contains(const std::string& digest) const;
  // Throws BadTrace if the data is missing, or has another length or digest.
  StoredBytes read(const std::string& digest, std::size_t bytes) const;

 private:
  struct Open;
  std::string path_;
  std::size_t size_ = 0;  // size of the file in bytes, an upper limit for any data in it
  std::unique_ptr<Open> open_;
};

}  // namespace plumb::trace
