// SPDX-License-Identifier: Apache-2.0
#include "process/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "process/interrupts.h"

namespace plumb::process {

namespace {

// Milliseconds between checks for signals and for the end of the other process.
constexpr int kLookEvery = 50;
constexpr std::uint32_t kMagic = 0x424d4c50;  // "PLMB"
constexpr std::size_t kHeader = sizeof kMagic + sizeof(std::uint64_t);
// Bytes by which the buffer grows. Memory follows the data that arrives, not the announced length.
constexpr std::size_t kPiece = std::size_t{1} << 20;

}  // namespace

std::pair<int, int> Channel::pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  return {ends[0], ends[1]};
}

void Channel::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

// Waits until the descriptor is ready (Got::message), the deadline is over, or the other end is
// gone.
Got Channel::wait(short events, Deadline deadline) const {
  while (true) {
    Interrupts::check();
    // Call gone_() before poll(), so that data that the other process wrote before its end is read.
    const bool gone = gone_();
    pollfd ready{descriptor_, events, 0};
    const int polled = poll(&ready, 1, gone ? 0 : deadline.milliseconds(kLookEvery));
    // Check the deadline before reading available data, so that a slow stream of bytes cannot
    // extend it.
    if (deadline.is_over()) return Got::timed_out;
    if (polled > 0) return Got::message;
    if (polled < 0 && errno != EINTR) return Got::hung_up;
    if (polled == 0 && gone) return Got::hung_up;
  }
}

Got Channel::read(void* to, std::size_t bytes, Deadline deadline) {
  for (auto* out = static_cast<char*>(to); bytes > 0;) {
    const Got ready = wait(POLLIN, deadline);
    if (ready != Got::message) return ready;
    const ssize_t got = recv(descriptor_, out, bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return Got::hung_up;
    out += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return Got::message;
}

Got Channel::write(const void* from, std::size_t bytes, Deadline deadline) {
  for (const auto* in = static_cast<const char*>(from); bytes > 0;) {
    const Got ready = wait(POLLOUT, deadline);
    if (ready != Got::message) return ready;
    const ssize_t sent = ::send(descriptor_, in, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return Got::hung_up;
    in += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return Got::message;
}

Got Channel::send(std::span<const std::uint8_t> message, Deadline deadline) {
  std::array<char, kHeader> header;
  const std::uint64_t length = message.size();
  std::memcpy(header.data(), &kMagic, sizeof kMagic);
  std::memcpy(header.data() + sizeof kMagic, &length, sizeof length);
  const Got sent = write(header.data(), header.size(), deadline);
  return sent == Got::message ? write(message.data(), message.size(), deadline) : sent;
}

Got Channel::receive(Bytes& message, Deadline deadline) {
  std::array<char, kHeader> header;
  // Reads the magic alone first: an invalid message may be shorter than a header, and waiting for
  // the rest would last until the deadline.
  Got got = read(header.data(), sizeof kMagic, deadline);
  if (got != Got::message) return got;
  if (std::memcmp(header.data(), &kMagic, sizeof kMagic) != 0) return Got::nonsense;
  std::uint64_t length = 0;
  got = read(&length, sizeof length, deadline);
  if (got == Got::message && length > kLongest) return Got::nonsense;
  message.clear();
  while (got == Got::message && message.size() < length) {
    const std::size_t before = message.size();
    message.resize(std::min<std::uint64_t>(length, before + kPiece));
    got = read(message.data() + before, message.size() - before, deadline);
  }
  return got;
}

}  // namespace plumb::process
