// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace plumb::tests {

// Takes numbers and texts from the fuzzer's input. After its end everything is 0.
class FuzzInput {
 public:
  explicit FuzzInput(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }
  // Small numbers, powers of two and their neighbours, or arbitrary ones.
  std::int64_t number() {
    const std::uint8_t kind = byte();
    if (kind < 128) return static_cast<std::int8_t>(kind << 1) / 2;
    if (kind < 192)
      return static_cast<std::int64_t>((std::uint64_t{1} << (kind - 128)) - (kind & 1));
    std::int64_t value = 0;
    for (int i = 0; i < 8; ++i)
      value = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << 8 | byte());
    return value;
  }
  std::string text() {
    std::string text(byte() % 40, ' ');
    for (char& c : text) c = static_cast<char>(byte());
    return text;
  }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[byte() % all.size()];
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace plumb::tests
