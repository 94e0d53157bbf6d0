// SPDX-License-Identifier: Apache-2.0
#include "tools/judge/trace_files.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <system_error>
#include <thread>

#include "process/interrupts.h"
#include "tools/selection.h"

namespace plumb::tools {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kBetweenLooks{200};

bool is_step_file(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("step-") && name.ends_with(".h5");
}

// The folder and its subfolders of ranks.
std::vector<fs::path> folders_of(const std::string& path) {
  std::vector<fs::path> folders{path};
  std::error_code trouble;
  for (const auto& entry : fs::directory_iterator(path, trouble)) {
    const bool rank = entry.path().filename().string().starts_with("rank-");
    if (rank && entry.is_directory(trouble)) folders.push_back(entry.path());
  }
  return folders;
}

std::vector<std::string> step_files_in(const std::vector<fs::path>& folders) {
  std::vector<std::string> files;
  std::error_code trouble;
  for (const fs::path& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder, trouble)) {
      if (is_step_file(entry.path())) files.push_back(entry.path().string());
    }
  }
  std::ranges::sort(files);
  return files;
}

bool is_finished(const std::vector<fs::path>& folders) {
  std::error_code trouble;
  const auto has_marker = [&](const fs::path& folder) {
    return fs::exists(folder / "finished", trouble);
  };
  if (has_marker(folders.front())) return true;
  return folders.size() > 1 && std::all_of(folders.begin() + 1, folders.end(), has_marker);
}

}  // namespace

std::vector<std::string> files_of(const std::string& path) {
  std::error_code trouble;
  if (fs::is_regular_file(path, trouble)) return {path};
  if (!fs::is_directory(path, trouble)) throw UsageError(path + ": No such file or directory");
  std::vector<std::string> files = step_files_in(folders_of(path));
  if (files.empty()) {
    throw UsageError(path +
                     ": not a trace: no step-*.h5 in this folder or in a folder rank-* of it");
  }
  return files;
}

void follow_files(const std::string& path, double idle,
                  const std::function<void(const std::vector<std::string>&)>& take) {
  using Clock = std::chrono::steady_clock;
  std::error_code trouble;
  if (fs::is_regular_file(path, trouble)) {
    throw UsageError(path + ": --follow needs the folder of a recording");
  }
  std::set<std::string> known;
  auto last = Clock::now();
  while (process::Interrupts::signal() == 0) {
    const std::vector<fs::path> folders = folders_of(path);
    const bool finished = is_finished(folders);  // before the last listing
    std::vector<std::string> files = step_files_in(folders);
    std::erase_if(files, [&](const std::string& file) { return !known.insert(file).second; });
    if (!files.empty()) {
      take(files);
      last = Clock::now();
    }
    if (finished) return;
    const std::chrono::duration<double> waited = Clock::now() - last;
    if (idle > 0 && waited.count() >= idle) return;
    if (files.empty()) std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace plumb::tools
