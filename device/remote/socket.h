// SPDX-License-Identifier: Apache-2.0
//
// Connected sockets, messages over them, and memory that both ends map.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "device/remote/codec.h"
#include "device/remote/messages.h"

namespace plumb::device::remote {

// Owns a descriptor, and closes it.
class OwnedDescriptor {
 public:
  explicit OwnedDescriptor(int number = -1) : number_(number) {}
  ~OwnedDescriptor();
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OwnedDescriptor& operator=(OwnedDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int number() const { return number_; }

 private:
  int number_;
};

// Throws std::system_error.
std::pair<OwnedDescriptor, OwnedDescriptor> connected_sockets();

struct Message {
  Header header;
  Bytes bytes;
};

// Both return false if the other end hung up.
bool send_bytes(const OwnedDescriptor& socket, const Bytes& bytes);
bool send_message(const OwnedDescriptor& socket, Header header, const Bytes& bytes);
// Receives messages from a socket, one after the other.
class Inbox {
 public:
  explicit Inbox(const OwnedDescriptor& socket) : socket_(socket) {}

  // Empty if the other end hung up, sent a message that is too long, or is not alive. After
  // wake_now_and_then(), `is_alive` is called whenever no byte has come for 0.2 s.
  std::optional<Message> receive(const std::function<bool()>& is_alive = [] { return true; });

 private:
  bool read(void* to, std::size_t bytes, const std::function<bool()>& is_alive);

  const OwnedDescriptor& socket_;
  std::array<std::byte, 4096> ahead_;  // read ahead: most messages take one system call
  std::size_t begin_ = 0, end_ = 0;
};
void wake_now_and_then(const OwnedDescriptor& socket);

// Hands a connection to the other process: a socket and its shared memory.
bool send_descriptors(const OwnedDescriptor& socket, const OwnedDescriptor& first,
                      const OwnedDescriptor& second);
std::optional<std::pair<OwnedDescriptor, OwnedDescriptor>> receive_descriptors(
    const OwnedDescriptor& socket);

// kSharedBytes that several processes map. Pages that are never touched cost no memory.
class SharedBuffer {
 public:
  SharedBuffer();                                     // makes a new one
  explicit SharedBuffer(OwnedDescriptor descriptor);  // maps the buffer of another process
  ~SharedBuffer();
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;

  const OwnedDescriptor& descriptor() const { return descriptor_; }
  std::byte* data() const { return data_; }
  // Address of a range. Throws ProtocolError if it leaves the buffer.
  std::byte* range(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  void map();

  OwnedDescriptor descriptor_;
  std::byte* data_ = nullptr;
};

}  // namespace plumb::device::remote
