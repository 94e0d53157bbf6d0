// SPDX-License-Identifier: Apache-2.0
//
// HDF5's C API with handles that close themselves and errors that are exceptions. HDF5 keeps state
// of its own for a process: who uses it holds an Hdf5Session.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace plumb::hdf5 {

// A file or store that cannot be used. One line: which, and what is wrong with it. Names out of a
// file may be part of it: a control character is shown as "?".
class BadFile : public std::runtime_error {
 public:
  explicit BadFile(std::string what);
};

class Handle {
 public:
  // Throws BadFile, "what: not there or not readable", for what HDF5 returned instead of a handle.
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

// Held while HDF5 is used. Its error stack is not printed meanwhile, and it loads no plug-ins.
class Hdf5Session {
 public:
  Hdf5Session();

 private:
  std::unique_lock<std::mutex> lock_;
};

// File access in memory: HDF5 never sees the file system.
Handle memory_access();

}  // namespace plumb::hdf5
