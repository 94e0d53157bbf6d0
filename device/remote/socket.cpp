// SPDX-License-Identifier: Apache-2.0
#include "device/remote/socket.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace plumb::device::remote {

namespace {

[[noreturn]] void fail(const char* call) {
  throw std::system_error(errno, std::generic_category(), call);
}

bool send_all(int socket, iovec* parts, std::size_t count) {
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  while (message.msg_iovlen > 0) {
    ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    for (; message.msg_iovlen > 0; ++message.msg_iov, --message.msg_iovlen) {
      iovec& part = *message.msg_iov;
      const auto taken = std::min(static_cast<std::size_t>(sent), part.iov_len);
      part.iov_base = static_cast<std::byte*>(part.iov_base) + taken;
      part.iov_len -= taken;
      sent -= static_cast<ssize_t>(taken);
      if (part.iov_len > 0) break;
    }
  }
  return true;
}

// Receives at least one byte. 0: the other end is gone.
std::size_t receive_some(int socket, void* to, std::size_t most,
                         const std::function<bool()>& is_alive) {
  bool alive = true;
  for (;;) {
    const ssize_t got = recv(socket, to, most, alive ? 0 : MSG_DONTWAIT);
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0 || (errno != EINTR && errno != EAGAIN)) return 0;
    if (!alive) return 0;  // the process is dead and left no bytes to read
    if (errno == EAGAIN) alive = is_alive();
  }
}

constexpr std::size_t kControlBytes = CMSG_SPACE(2 * sizeof(int));
struct alignas(cmsghdr) Control : std::array<char, kControlBytes> {};

}  // namespace

OwnedDescriptor::~OwnedDescriptor() {
  if (number_ >= 0) close(number_);
}

std::pair<OwnedDescriptor, OwnedDescriptor> connected_sockets() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair");
  return {OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1])};
}

bool send_bytes(const OwnedDescriptor& socket, const Bytes& bytes) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return send_all(socket.number(), &part, 1);
}

bool send_message(const OwnedDescriptor& socket, Header header, const Bytes& bytes) {
  header.bytes = bytes.size();
  iovec parts[] = {{&header, sizeof header}, {const_cast<std::byte*>(bytes.data()), bytes.size()}};
  return send_all(socket.number(), parts, bytes.empty() ? 1 : 2);
}

bool Inbox::read(void* to, std::size_t bytes, const std::function<bool()>& is_alive) {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const std::size_t here = std::min(bytes, end_ - begin_);
    std::memcpy(at, ahead_.data() + begin_, here);
    begin_ += here;
    at += here;
    bytes -= here;
    if (bytes == 0) break;
    begin_ = end_ = 0;
    const bool long_rest = bytes >= ahead_.size();
    const std::size_t got = receive_some(socket_.number(), long_rest ? at : ahead_.data(),
                                         long_rest ? bytes : ahead_.size(), is_alive);
    if (got == 0) return false;
    if (!long_rest) {
      end_ = got;
      continue;
    }
    at += got;
    bytes -= got;
  }
  return true;
}

std::optional<Message> Inbox::receive(const std::function<bool()>& is_alive) {
  Message message;
  if (!read(&message.header, sizeof message.header, is_alive)) return std::nullopt;
  if (message.header.bytes > kLongestMessage) return std::nullopt;
  message.bytes.resize(message.header.bytes);
  if (!read(message.bytes.data(), message.bytes.size(), is_alive)) return std::nullopt;
  return message;
}

void wake_now_and_then(const OwnedDescriptor& socket) {
  const timeval slice{0, 200000};
  if (setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice) != 0) {
    fail("setsockopt");
  }
}

bool send_descriptors(const OwnedDescriptor& socket, const OwnedDescriptor& first,
                      const OwnedDescriptor& second) {
  char mark = 0;
  iovec data{&mark, sizeof mark};
  Control control = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const int numbers[2] = {first.number(), second.number()};
  std::memcpy(CMSG_DATA(header), numbers, sizeof numbers);
  ssize_t sent = -1;
  do {
    sent = sendmsg(socket.number(), &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == 1;
}

std::optional<std::pair<OwnedDescriptor, OwnedDescriptor>> receive_descriptors(
    const OwnedDescriptor& socket) {
  char mark = 0;
  iovec data{&mark, sizeof mark};
  Control control = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = -1;
  do {
    got = recvmsg(socket.number(), &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* header = got == 1 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_len != CMSG_LEN(2 * sizeof(int))) return std::nullopt;
  int numbers[2];
  std::memcpy(numbers, CMSG_DATA(header), sizeof numbers);
  return std::pair(OwnedDescriptor(numbers[0]), OwnedDescriptor(numbers[1]));
}

SharedBuffer::SharedBuffer()
    : descriptor_(memfd_create("plumb copies", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (descriptor_.number() < 0) fail("memfd_create");
  if (ftruncate(descriptor_.number(), kSharedBytes) != 0) fail("ftruncate of shared memory");
  // Sealed: if a process cut off the file, an access beyond its end would end this process.
  if (fcntl(descriptor_.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    fail("F_ADD_SEALS of shared memory");
  }
  map();
}

SharedBuffer::SharedBuffer(OwnedDescriptor descriptor) : descriptor_(std::move(descriptor)) {
  map();
}

SharedBuffer::~SharedBuffer() { munmap(data_, kSharedBytes); }

void SharedBuffer::map() {
  void* memory =
      mmap(nullptr, kSharedBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.number(), 0);
  if (memory == MAP_FAILED) fail("mmap of shared memory");
  data_ = static_cast<std::byte*>(memory);
}

std::byte* SharedBuffer::range(std::uint64_t offset, std::uint64_t bytes) const {
  if (offset > kSharedBytes || bytes > kSharedBytes - offset) {
    throw ProtocolError("a copy outside the shared buffer");
  }
  return data_ + offset;
}

}  // namespace plumb::device::remote
