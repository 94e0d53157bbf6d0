// SPDX-License-Identifier: Apache-2.0
#include "process/temporary_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>
#include <vector>

namespace plumb::process {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRandom = 6;  // number of random letters that mkdtemp adds
// Seconds: a process locks its new folder within this time, so an older folder without a lock is
// abandoned.
constexpr std::time_t kOldEnough = 60;

int opened(const fs::path& folder) {
  return open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

// True if the folder was left behind by an ended process of this user.
bool is_abandoned(const fs::path& folder) {
  struct stat about = {};
  if (lstat(folder.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) return false;
  if (about.st_uid != geteuid() || std::time(nullptr) - about.st_mtime < kOldEnough) return false;
  const int lock = opened(folder);
  if (lock < 0) return false;
  const bool free = flock(lock, LOCK_EX | LOCK_NB) == 0;
  close(lock);
  return free;
}

void remove_abandoned(const fs::path& parent, const std::string& name) {
  std::error_code ignored;
  std::vector<fs::path> abandoned;
  for (fs::directory_iterator i(parent, ignored), end; !ignored && i != end; i.increment(ignored)) {
    const std::string other = i->path().filename().string();
    const bool same = other.starts_with(name + "-") && other.size() == name.size() + 1 + kRandom;
    if (same && is_abandoned(i->path())) abandoned.push_back(i->path());
  }
  for (const fs::path& folder : abandoned) fs::remove_all(folder, ignored);
}

}  // namespace

TemporaryFolder::TemporaryFolder(const std::string& name) {
  const fs::path parent = fs::temp_directory_path();
  remove_abandoned(parent, name);
  std::string pattern = (parent / (name + "-" + std::string(kRandom, 'X'))).string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "cannot make a folder " + pattern);
  }
  path_ = pattern;
  lock_ = opened(path_);
  if (lock_ >= 0) flock(lock_, LOCK_EX);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

}  // namespace plumb::process
