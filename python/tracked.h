// SPDX-License-Identifier: Apache-2.0
//
// Arrays of reference/tracked in Python, and ops whose reference is a Python function of them.
#pragma once

#include <nanobind/nanobind.h>

#include "reference/bound.h"

namespace plumb::python {

// While this thread computes the reference of a call: the numerics of arrays that it makes.
class NumericsOfCall {
 public:
  explicit NumericsOfCall(const reference::Numerics& numerics);
  ~NumericsOfCall();
  NumericsOfCall(const NumericsOfCall&) = delete;
  NumericsOfCall& operator=(const NumericsOfCall&) = delete;

 private:
  const reference::Numerics* outer_;
};

// Tracked, its operators and functions. plumb_kernels/tracked.py is the other half.
void add_tracked(nanobind::module_& module);

// add_op(). plumb_kernels/_own_ops.py is the other half.
void add_own_ops(nanobind::module_& module);

}  // namespace plumb::python
