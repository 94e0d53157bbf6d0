// SPDX-License-Identifier: Apache-2.0
//
// --plugin kernels.py: the process of such a plug-in is a Python interpreter, which imports the
// file and serves the functions in it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/remote/plugin_process.h"

namespace plumb::device::remote {

// "kernels.py", or "kernels.py::name" for one function of it.
bool is_python(const std::string& path);

// PLUMB_PYTHON, or python3 of PATH.
std::string python_interpreter();
// Why this interpreter cannot import plumb_kernels, and which variable names another one; "": it
// can.
std::string why_no_python(const std::string& interpreter);

// Command that runs a module of plumb_kernels. An interpreter that cannot import the package ends
// without a word: why_no_python() has the reason.
std::vector<std::string> python_command(const std::string& interpreter, const std::string& module,
                                        const std::vector<std::string>& arguments);

// Throws Refused, also for an interpreter that serves no plug-in at all, and Died.
std::shared_ptr<PluginProcess> start_python_plugin(const std::string& path);

}  // namespace plumb::device::remote
