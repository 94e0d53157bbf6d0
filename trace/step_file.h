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

using StepData = std::map<std::string, std::span<const std::byte>>;  // by digest

// Writes `path` whole or not at all. Throws BadTrace: "path: why".
void write_step_file(const std::string& path, const std::string& text, const StepData& data);

// Whatever holds bytes of a file: the file's own pages, if these can be mapped.
struct BytesOwner {
  virtual ~BytesOwner() = default;
  // Pages are read again when they are looked at.
  virtual void leave_memory() const {}
};

struct StoredBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const BytesOwner> owner;  // null: of no bytes
};

// Nothing of HDF5 is trusted, but HDF5 itself may crash on bytes made for that: for a process that
// may end so. Not for several threads at once.
class StepFile {
 public:
  // Throws BadTrace for a file that is none of a trace.
  explicit StepFile(std::string path);
  ~StepFile();

  const std::string& path() const { return path_; }
  std::string text() const;
  bool contains(const std::string& digest) const;
  // Throws BadTrace for data that is not there, has not this length, or not this digest.
  StoredBytes read(const std::string& digest, std::size_t bytes) const;

 private:
  struct Open;
  std::string path_;
  std::size_t size_ = 0;  // bytes: no data of the file is longer
  std::unique_ptr<Open> open_;
};

}  // namespace plumb::trace
