// SPDX-License-Identifier: Apache-2.0
//
// Python functions as implementations of ops. Launchers turn a C struct into named arguments and
// call the function when the stream reaches it. plumb_kernels/_kernels.py is the Python side.
#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "device/op_entry.h"

namespace plumb::python {

// The functions of this process. Callers hold Python's lock if a parameter is a Python object.
class PythonKernels {
 public:
  static PythonKernels& all();

  // before_launch(platform, arguments) returns why the call is not supported, or None.
  // run(platform, stream, arguments) returns None, or a pair of "unsupported" or "failed" and a
  // text. Throws BadRow for an unknown op.
  void add(const std::string& op, const std::string& name,
           const std::map<std::string, double>& numerics, const std::string& contract,
           nanobind::object before_launch, nanobind::object run);

  void clear() { entries_.clear(); }

  std::vector<device::OpEntry> entries() const { return entries_; }

 private:
  std::vector<device::OpEntry> entries_;
};

// Opens a device and registers it for the launchers.
std::unique_ptr<device::Device> open_for_python(std::string_view platform,
                                                const device::Conditions& conditions);

void add_kernels(nanobind::module_& module);

}  // namespace plumb::python
