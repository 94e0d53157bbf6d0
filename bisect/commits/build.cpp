// SPDX-License-Identifier: Apache-2.0
#include "bisect/commits/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "bisect/search/process.h"

namespace plumb::bisect {

namespace {

namespace fs = std::filesystem;

// The first line that contains "error", otherwise the last line. Control characters become spaces,
// so that colours do not reach reports.
std::string telling_line(std::string output) {
  std::replace_if(
      output.begin(), output.end(),
      [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7f; }, ' ');
  std::istringstream text(output);
  std::string last;
  for (std::string line; std::getline(text, line);) {
    if (line.find("error") != std::string::npos) return line;
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace

void require_inside(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  if (path.empty()) throw std::invalid_argument("names no file");
  if (normal.is_absolute() || *normal.begin() == "..") {
    throw std::invalid_argument(fmt::format(
        "{} is outside the folder that is built, so every build would give the same file", path));
  }
}

Built build(const std::string& command, const std::string& folder, const std::string& file,
            const std::vector<std::string>& environment, double longest) {
  const fs::path made = fs::path(folder) / file;
  std::error_code ignored;
  fs::remove(made, ignored);
  const Ended ended = run_process({{"/bin/sh", "-c", command}, folder, environment, longest});
  if (ended.timed_out) return {false, "does not build: " + ended.how(), ended.seconds};
  if (ended.signal != 0 || ended.code >= 128) {
    throw Interrupted(fmt::format("the build {}", ended.how()));
  }
  if (!ended.ok()) {
    const std::string said = telling_line(ended.err.empty() ? ended.out : ended.err);
    return {false, fmt::format("does not build: {}", said.empty() ? ended.how() : said),
            ended.seconds};
  }
  if (!fs::exists(made, ignored)) {
    return {false, fmt::format("does not build: the build made no {}", file), ended.seconds};
  }
  return {true, "", ended.seconds};
}

}  // namespace plumb::bisect
