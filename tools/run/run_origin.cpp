// SPDX-License-Identifier: Apache-2.0
#include "tools/run/run_origin.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/utsname.h>

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "device/device.h"
#include "golden/provenance.h"
#include "hdf5/digest.h"
#include "process/own_program.h"
#include "process/shell.h"
#include "tools/run/installed_files.h"

namespace plumb::tools {

namespace {

std::string host() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return fmt::format("{}, {} {} {}", name.nodename, name.sysname, name.release, name.machine);
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  constexpr std::string_view kName = "model name";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kName)) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

// The command line as typed, with "plumb" in place of the program's path.
std::string command_line() {
  const std::vector<std::string> words = process::own_command_line();
  std::string text = "plumb";
  for (std::size_t i = 1; i < words.size(); ++i) text += " " + process::shell_quoted(words[i]);
  return text;
}

std::string digest_of_file(const std::string& path) {
  std::error_code missing;
  if (!std::filesystem::is_regular_file(path, missing)) return "unknown";
  std::ifstream file(path, std::ios::binary);
  if (!file) return "unknown";
  return hdf5::digest_of(std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace

RunOrigin origin_of_process() {
  return {{"plumb", PLUMB_VERSION},
          {"commit", own_commit()},
          {"program", digest_of_file(process::own_program())},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
          {"command", command_line()},
          {"host", host()},
          {"processor", processor()}};
}

void add_kernels(const std::vector<std::string>& platforms, const std::string& plugin,
                 RunOrigin& origin) {
  for (const std::string& platform : platforms) {
    if (!device::why_unavailable(platform).empty()) continue;
    const auto from = golden::provenance_of("", device::open_device(platform)->properties());
    origin.emplace_back(platform, fmt::format("{}; {}; {}", from.at("device"), from.at("compiler"),
                                              from.at("libraries")));
  }
  if (!plugin.empty()) origin.emplace_back("plugin_digest", digest_of_file(plugin));
}

}  // namespace plumb::tools
