// SPDX-License-Identifier: Apache-2.0
//
// Messages between two processes over a socket. A message is 4 bytes of magic, 8 bytes of length
// and the content. The magic makes sure that a stray write of a kernel is not read as a message.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "process/deadline.h"

namespace plumb::process {

using Bytes = std::vector<std::uint8_t>;

enum class Got { message, hung_up, timed_out, nonsense };

// One end of a socket. Not thread-safe.
class Channel {
 public:
  static constexpr std::uint64_t kLongest = std::uint64_t{1} << 30;  // bytes of a message

  // Takes ownership of the descriptor.
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  ~Channel() { close(); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Two connected descriptors, closed on exec. Throws std::system_error.
  static std::pair<int, int> pair();

  // Both throw Interrupted, and call the function given to watch() regularly. A closed socket does
  // not show that the other process has ended, because a forked copy of it may keep the socket
  // open.
  Got send(std::span<const std::uint8_t> message, Deadline deadline);
  Got receive(Bytes& message, Deadline deadline);
  void watch(std::function<bool()> other_end_is_gone) { gone_ = std::move(other_end_is_gone); }
  void close();

 private:
  Got wait(short events, Deadline deadline) const;
  Got read(void* to, std::size_t bytes, Deadline deadline);
  Got write(const void* from, std::size_t bytes, Deadline deadline);

  int descriptor_;
  std::function<bool()> gone_ = [] { return false; };
};

}  // namespace plumb::process
