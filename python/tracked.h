// SPDX-License-Identifier: Apache-2.0
//
// Arrays of reference/tracked in Python, and ops whose reference is a Python function of such
// arrays.
#pragma once

#include <nanobind/nanobind.h>

#include "reference/bound.h"

namespace plumb::python {

// Sets the numerics of arrays that this thread makes, while it computes the reference of a call.
class NumericsOfCall {
 public:
  explicit NumericsOfCall(const reference::Numerics& numerics);
  ~NumericsOfCall();
  NumericsOfCall(const NumericsOfCall&) = delete;
  NumericsOfCall& operator=(const NumericsOfCall&) = delete;

 private:
  const reference::Numerics* outer_;
};

// Adds the class Tracked with its operators and functions. plumb_kernels/tracked.py is the Python
// side.
void add_tracked(nanobind::module_& module);

// Adds add_op(). plumb_kernels/_own_ops.py is the Python side.
void add_own_ops(nanobind::module_& module);

}  // namespace plumb::python
