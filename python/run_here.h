// SPDX-License-Identifier: Apache-2.0
//
// Cases in the process of the Python functions themselves: for functions that no other process can
// import. A crash ends the process, and nothing stops a hang.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

namespace plumb::python {

// The functions that add_kernel added last. A dictionary for each case of their ops that a pattern
// matches (none: all) and that is in the tier. Throws BadRow for a tier or platform that plumb
// does not know.
nanobind::list run_here(const std::vector<std::string>& patterns, const std::string& tier,
                        const std::vector<std::string>& platforms);

}  // namespace plumb::python
