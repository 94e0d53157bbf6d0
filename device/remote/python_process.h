// SPDX-License-Identifier: Apache-2.0
//
// The process of a plug-in `--plugin kernels.py` is a Python interpreter that imports the file and
// serves its functions.
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
// Why this interpreter cannot import plumb_kernels, with the variable that names another one; "" if
// it can.
std::string why_no_python(const std::string& interpreter);

// Command that runs a module of plumb_kernels. An interpreter that cannot import the package ends
// silently; why_no_python() has the reason.
std::vector<std::string> python_command(const std::string& interpreter, const std::string& module,
                                        const std::vector<std::string>& arguments);

// Throws Refused, also if the interpreter cannot serve any plug-in, and Died.
std::shared_ptr<PluginProcess> start_python_plugin(const std::string& path);

}  // namespace plumb::device::remote
