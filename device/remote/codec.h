// SPDX-License-Identifier: Apache-2.0
//
// Values as bytes of a message, in the order in which they are written. Both ends are built from
// this source, so values are copied as they are in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace plumb::device::remote {

using Bytes = std::vector<std::byte>;

// The other process has ended, or its answer is nonsense: "its process ended with signal 11
// (Segmentation fault)". Not a DeviceError, because the device is gone.
class Died : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A message whose contents do not fit its kind.
class ProtocolError : public Died {
 public:
  explicit ProtocolError(const std::string& what) : Died("its process sent nonsense: " + what) {}
};

class MessageWriter {
 public:
  template <typename T>
    requires std::is_trivially_copyable_v<T>
  MessageWriter& put(const T& value) {
    return put_bytes(&value, sizeof value);
  }
  MessageWriter& put_text(std::string_view text) {
    put<std::uint64_t>(text.size());
    return put_bytes(text.data(), text.size());
  }
  MessageWriter& put_bytes(const void* from, std::size_t bytes) {
    const auto* begin = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), begin, begin + bytes);
    return *this;
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

// Throws ProtocolError if the message ends too early.
class MessageReader {
 public:
  explicit MessageReader(Bytes bytes) : bytes_(std::move(bytes)) {}

  template <typename T>
    requires std::is_trivially_copyable_v<T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::string text() {
    const auto size = get<std::uint64_t>();
    return {reinterpret_cast<const char*>(take(size)), size};
  }
  // Number of items that follow, each of at least `least_bytes_of_one` bytes.
  std::size_t count(std::size_t least_bytes_of_one) {
    const auto count = get<std::uint64_t>();
    if (count > (bytes_.size() - at_) / least_bytes_of_one) {
      throw ProtocolError("a message counts more than it has");
    }
    return count;
  }
  const std::byte* take(std::size_t bytes) {
    if (bytes > bytes_.size() - at_) throw ProtocolError("a message ends too early");
    at_ += bytes;
    return bytes_.data() + at_ - bytes;
  }

 private:
  Bytes bytes_;
  std::size_t at_ = 0;
};

}  // namespace plumb::device::remote
