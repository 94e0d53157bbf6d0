// SPDX-License-Identifier: Apache-2.0
#include "process/output_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace plumb::process {

OutputFile::OutputFile() {
  std::string name = (std::filesystem::temp_directory_path() / "plumb-output-XXXXXX").string();
  // O_APPEND, so that processes that share the file do not overwrite each other's text.
  descriptor_ = mkostemp(name.data(), O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), name);
  unlink(name.c_str());
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string OutputFile::text() const {
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const auto at = static_cast<off_t>(text.size());
    const ssize_t got = pread(descriptor_, buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace plumb::process
