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

std::string interpreter() {
  const char* named = std::getenv("PLUMB_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

std::string last_line(std::string text) {
  text.erase(text.find_last_not_of('\n') + 1);
  return text.substr(text.rfind('\n') + 1);
}

// Why the interpreter serves no plug-in at all; "": nothing is wrong with it.
std::string why_not(const std::string& python) {
  try {
    const process::Ended ended =
        process::run_to_end({.words = {python, "-c", fmt::format("import {}", kModule)}});
    if (ended.ok()) return "";
    return fmt::format("{} cannot import plumb_kernels: {}", python, last_line(ended.err));
  } catch (const std::system_error& error) {
    return fmt::format("{} cannot be run: {}", python, error.code().message());
  }
}

}  // namespace

bool is_python(const std::string& path) {
  return path.ends_with(".py") || path.find(".py::") != std::string::npos;
}

std::shared_ptr<PluginProcess> start_python_plugin(const std::string& path) {
  const std::string python = interpreter();
  const auto refuse = [&](const std::string& why) {
    throw Refused(fmt::format("{}: {} (PLUMB_PYTHON names another interpreter)", path, why));
  };
  try {
    return PluginProcess::start(
        {python, "-m", kModule, fmt::format("{:x}", interface_digest()), path});
  } catch (const Died&) {
    if (const std::string why = why_not(python); !why.empty()) refuse(why);
    throw;
  } catch (const std::system_error& error) {
    refuse(fmt::format("{} cannot be run: {}", python, error.code().message()));
  }
  return nullptr;
}

}  // namespace plumb::device::remote
