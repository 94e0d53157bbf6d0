// SPDX-License-Identifier: Apache-2.0
//
// One end of a pair of connected sockets, messages over it, and memory that both ends see.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "device/remote/codec.h"
#include "device/remote/messages.h"

namespace plumb::device::remote {

// A descriptor, closed at the end.
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

// False: the other end hung up.
bool send_bytes(const OwnedDescriptor& socket, const Bytes& bytes);
bool send_message(const OwnedDescriptor& socket, Header header, const Bytes& bytes);
// The messages that come from a socket, one after the other.
class Inbox {
 public:
  explicit Inbox(const OwnedDescriptor& socket) : socket_(socket) {}

  // Nothing if the other end hung up, sent a message that is too long, or is dead. Where
  // wake_now_and_then() is set, `is_alive` is called whenever no byte has come for a while.
  std::optional<Message> receive(const std::function<bool()>& is_alive = [] { return true; });

 private:
  bool read(void* to, std::size_t bytes, const std::function<bool()>& is_alive);

  const OwnedDescriptor& socket_;
  std::array<std::byte, 4096> ahead_;  // one call of the system for most messages
  std::size_t begin_ = 0, end_ = 0;
};
void wake_now_and_then(const OwnedDescriptor& socket);

// A connection handed to the other process: a socket, and the memory that belongs to it.
bool send_descriptors(const OwnedDescriptor& socket, const OwnedDescriptor& first,
                      const OwnedDescriptor& second);
std::optional<std::pair<OwnedDescriptor, OwnedDescriptor>> receive_descriptors(
    const OwnedDescriptor& socket);

// kSharedBytes that several processes map. Pages cost memory only once touched.
class SharedBuffer {
 public:
  SharedBuffer();                                     // a new one
  explicit SharedBuffer(OwnedDescriptor descriptor);  // of another process
  ~SharedBuffer();
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;

  const OwnedDescriptor& descriptor() const { return descriptor_; }
  std::byte* data() const { return data_; }
  // Throws ProtocolError.
  std::byte* range(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  void map();

  OwnedDescriptor descriptor_;
  std::byte* data_ = nullptr;
};

}  // namespace plumb::device::remote
