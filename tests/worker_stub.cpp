// SPDX-License-Identifier: Apache-2.0
//
// A worker that does what worker_test.cpp asks of it: answers, dies in several ways, or does not
// answer at all.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "tools/worker.h"

int main() {
  using plumb::tools::Bytes;
  if (!plumb::tools::is_worker()) return 9;
  return plumb::tools::serve([](std::uint64_t task) -> Bytes {
    switch (task) {
      case 100: std::raise(SIGSEGV); break;
      case 101: std::_Exit(3);
      case 102:
        while (true) pause();
      case 103: throw std::runtime_error("on purpose");
      case 104: return Bytes(3 << 20, 7);
      case 105: {
        const auto id = static_cast<std::uint32_t>(getpid());
        return {static_cast<std::uint8_t>(id), static_cast<std::uint8_t>(id >> 8),
                static_cast<std::uint8_t>(id >> 16)};
      }
      default: break;
    }
    return {static_cast<std::uint8_t>(task + 1)};
  });
}
