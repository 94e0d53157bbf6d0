// SPDX-License-Identifier: Apache-2.0
#include "tools/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace plumb::tools {

namespace {

int put_error = 0;  // errno of the first failed write

}  // namespace

void occupy_standard_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    // Read-only, so that writing fails as with a closed descriptor.
    if (fcntl(descriptor, F_GETFD) == -1) static_cast<void>(open("/dev/null", O_RDONLY));
  }
}

void put(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written && put_error == 0) put_error = errno;
}

void put_at_once(std::string_view text) {
  put(text);
  if (std::fflush(stdout) != 0 && put_error == 0) put_error = errno;
}

void print_error(std::string_view line) {
  put_at_once("");
  // A full or closed standard error must not change the exit code.
  std::fputs(fmt::format("plumb: {}\n", line).c_str(), stderr);
}

void finish_output() {
  const bool failed_before = std::ferror(stdout) != 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (!flushed && put_error == 0) put_error = errno;
  if (flushed && !failed_before) return;
  if (put_error == EPIPE) return;  // the reader wants no more
  throw std::runtime_error(fmt::format("cannot write standard output{}{}", put_error ? ": " : "",
                                       put_error ? std::strerror(put_error) : ""));
}

}  // namespace plumb::tools
