// SPDX-License-Identifier: Apache-2.0
//
// Runs cases in the process of the Python functions, for functions that no other process can
// import. A crash ends the process, and a hang is not stopped.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

namespace plumb::python {

// Runs cases of the ops whose functions were added since the last clear_kernels(). Returns a
// dictionary for each case in the tier that matches a pattern (no patterns: all). Throws BadRow for
// an unknown tier or platform.
nanobind::list run_here(const std::vector<std::string>& patterns, const std::string& tier,
                        const std::vector<std::string>& platforms);

}  // namespace plumb::python
