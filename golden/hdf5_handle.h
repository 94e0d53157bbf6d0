// SPDX-License-Identifier: Apache-2.0
//
// HDF5's C API with handles that close themselves and errors that are exceptions. HDF5 keeps state
// of its own for a process: who uses it holds `hdf5_lock`.
#pragma once

#include <hdf5.h>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "golden/model.h"

namespace plumb::golden {

class Handle {
 public:
  // Throws GoldenError, "what: cannot ...", for what HDF5 returned instead of a handle.
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

// For the result of a call that returns no handle: throws GoldenError if it is negative.
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

// How an element is stored. bf16 is a floating-point type with its true layout, the one that newer
// versions of HDF5 have predefined.
Handle type_of(cases::Dtype dtype);

}  // namespace plumb::golden
