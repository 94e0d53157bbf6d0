// SPDX-License-Identifier: Apache-2.0
#include "device/remote/python_process.h"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>

#include "device/plugin/known_ops.h"
#include "process/run.h"

namespace plumb::device::remote {

namespace {

constexpr const char* kModule = "plumb_kernels._worker";

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of('\n') + 1);
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

std::string python_interpreter() {
  const char* named = std::getenv("PLUMB_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

std::string why_no_python(const std::string& python) {
  const auto why = [&](const std::string& text) {
    return fmt::format("{} {} (PLUMB_PYTHON names another interpreter)", python, text);
  };
  try {
    const process::Ended ended =
        process::run_to_end({.words = {python, "-c", fmt::format("import {}", kModule)}});
    if (ended.ok()) return "";
    return why("cannot import plumb_kernels: " + last_line(ended.err));
  } catch (const std::system_error& error) {
    return why("cannot be run: " + error.code().message());
  }
}

std::vector<std::string> python_command(const std::string& interpreter, const std::string& module,
                                        const std::vector<std::string>& arguments) {
  const std::string program = fmt::format(
      "import runpy, sys\n"
      "try:\n"
      "    import plumb_kernels\n"
      "except Exception:\n"
      "    sys.exit(3)\n"
      "runpy.run_module('{}', run_name='__main__', alter_sys=True)\n",
      module);
  std::vector<std::string> words{interpreter, "-c", program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

bool is_python(const std::string& path) {
  return path.ends_with(".py") || path.find(".py::") != std::string::npos;
}

std::shared_ptr<PluginProcess> start_python_plugin(const std::string& path) {
  const std::string python = python_interpreter();
  const auto refuse_python = [&] {
    const std::string why = why_no_python(python);
    if (!why.empty()) throw Refused(fmt::format("{}: {}", path, why));
  };
  try {
    return PluginProcess::start(
        python_command(python, kModule, {fmt::format("{:x}", interface_digest()), path}));
  } catch (const Died&) {
    refuse_python();
    throw;
  } catch (const std::system_error&) {
    refuse_python();
    throw;
  }
}

}  // namespace plumb::device::remote
