// SPDX-License-Identifier: Apache-2.0
#include "golden/file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "golden/model.h"

namespace plumb::golden {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

[[noreturn]] void fail(std::string_view what, const std::string& path) {
  throw GoldenError(fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) : descriptor_(-1) {
  std::error_code error;
  for (std::filesystem::path one = folder; !one.empty() && !std::filesystem::exists(one, error);
       one = one.parent_path()) {
    made_.push_back(one.string());
  }
  std::filesystem::create_directories(folder, error);
  descriptor_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) fail("open", folder);
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int why = errno;
  close(descriptor_);
  if (why == EWOULDBLOCK) {
    throw GoldenError(fmt::format("{}: another plumb is changing these goldens", folder));
  }
  errno = why;
  fail("lock", folder);
}

FolderLock::~FolderLock() {
  for (const std::string& made : made_) rmdir(made.c_str());  // keeps folders with files
  close(descriptor_);
}

std::optional<std::vector<std::byte>> FileSystem::read(const std::string& path,
                                                       std::size_t most) const {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.number() < 0 && errno == ENOENT) return std::nullopt;
  struct stat about{};
  if (file.number() < 0 || fstat(file.number(), &about) != 0) fail("read", path);
  if (!S_ISREG(about.st_mode)) throw GoldenError(fmt::format("cannot read {}: not a file", path));
  if (static_cast<std::size_t>(about.st_size) > most) {
    throw GoldenError(fmt::format("{}: {} bytes, too large for a golden", path, about.st_size));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(about.st_size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file.number(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path);
    if (got == 0) break;  // the file was shortened meanwhile
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

void FileSystem::write(const std::string& path, std::span<const std::byte> bytes) {
  const Descriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (file.number() < 0) fail("write", path);
  while (!bytes.empty()) {
    const ssize_t done = ::write(file.number(), bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
  if (fsync(file.number()) != 0) fail("write", path);
}

void FileSystem::rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail("replace", to);
}

void FileSystem::remove(const std::string& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) fail("remove", path);
}

void FileSystem::make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!std::filesystem::is_directory(path)) fail("make the folder", path);
}

void FileSystem::sync_folder(const std::string& path) {
  const Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.number() < 0 || fsync(folder.number()) != 0) fail("write", path);
}

}  // namespace plumb::golden
