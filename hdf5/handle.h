// SPDX-License-Identifier: Apache-2.0
//
// HDF5's C API with handles that close themselves and errors that are exceptions. HDF5 has global
// state, so every use must hold an Hdf5Session.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace plumb::hdf5 {

// A file or store that cannot be used. The message is one line that names the file and the defect.
// Names read from a file may be part of it, so control characters are replaced by "?".
class BadFile : public std::runtime_error {
 public:
  explicit BadFile(std::string what);
};

class Handle {
 public:
  // Throws BadFile, "what: not there or not readable", if `id` is negative, which is how HDF5
  // reports an error.
  Handle(hid_t id, herr_t (*close)(hid_t), std::string_view what);
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// For the result of a call that returns no handle: throws BadFile if it is negative.
void require_success(herr_t result, std::string_view what);

// Lock to hold while HDF5 is used. HDF5 then does not print its error stack and loads no plug-ins.
class Hdf5Session {
 public:
  Hdf5Session();

 private:
  std::unique_lock<std::mutex> lock_;
};

// File access property list for files in memory, so that HDF5 never touches the file system.
Handle memory_access();

}  // namespace plumb::hdf5
