// SPDX-License-Identifier: Apache-2.0
#include "golden/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "device/sim/sanitizers.h"
#include "golden/file_cbor.h"
#include "golden/hdf5_file.h"

namespace plumb::golden {

namespace {

constexpr rlim_t kMemory = rlim_t{1} << 30, kSeconds = 20;
constexpr std::size_t kLongestAnswer = std::size_t{256} << 20;

void limit(int resource, rlim_t most) {
  const rlimit both{most, most};
  setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

void set_limits() {
  // A sanitizer reserves more address space than there is memory.
  if (!device::sim::sanitizers::kActive) limit(RLIMIT_AS, kMemory);
  limit(RLIMIT_CPU, kSeconds);
  limit(RLIMIT_FSIZE, 0);  // of a pipe there is none
  limit(RLIMIT_CORE, 0);
}

void send(int to, const std::vector<std::uint8_t>& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t sent = write(to, bytes.data() + done, bytes.size() - done);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    done += static_cast<std::size_t>(sent);
  }
}

// Never returns. The first byte of the answer says which kind follows.
[[noreturn]] void answer(int to, std::span<const std::byte> bytes, const std::string& name) {
  set_limits();
  std::vector<std::uint8_t> text;
  try {
    text = to_cbor(decode(bytes, name));
    text.insert(text.begin(), 'f');
  } catch (const std::exception& error) {
    const std::string what =
        dynamic_cast<const GoldenError*>(&error) ? error.what() : name + ": needs too much memory";
    text.assign(what.begin(), what.end());
    text.insert(text.begin(), 'e');
  }
  send(to, text);
  _exit(0);
}

std::vector<std::uint8_t> receive(int from) {
  std::vector<std::uint8_t> all;
  std::uint8_t buffer[1 << 16];
  while (all.size() <= kLongestAnswer) {
    const ssize_t got = read(from, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    all.insert(all.end(), buffer, buffer + got);
  }
  return all;
}

std::string reason_of(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) return "takes too long to read";
  if (WIFSIGNALED(status)) {
    return fmt::format("reading it ends with signal {}", WTERMSIG(status));
  }
  return "reading it gives no answer";
}

}  // namespace

GoldenFile decode_untrusted(std::span<const std::byte> bytes, const std::string& name) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw GoldenError(name + ": " + std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) answer(ends[1], bytes, name);
  close(ends[1]);
  const std::vector<std::uint8_t> text = child > 0 ? receive(ends[0]) : std::vector<std::uint8_t>{};
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    throw GoldenError(name + ": no process to read it in");
  }
  if (text.empty() || status != 0) throw GoldenError(name + ": " + reason_of(status));
  const std::span<const std::uint8_t> rest = std::span(text).subspan(1);
  if (text[0] == 'e') throw GoldenError(std::string(rest.begin(), rest.end()));
  return from_cbor(rest, name);
}

}  // namespace plumb::golden
