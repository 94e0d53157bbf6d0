// SPDX-License-Identifier: Apache-2.0
//
// A worker that does what tests ask of it: answers, dies in several ways, or does not answer at
// all.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "tools/wire.h"
#include "tools/worker.h"

namespace {

using plumb::tools::Bytes;

// What a watch of as many steps has found; task 1 ends the process.
Bytes watch(std::uint64_t task) {
  if (task == 1) std::raise(SIGSEGV);
  plumb::cases::WatchResult result;
  result.steps = static_cast<std::int64_t>(task);
  result.findings.push_back({plumb::cases::Detector::path, 1, 4, "sparse_mla_decode", "", ""});
  return plumb::tools::to_bytes(plumb::cases::DiagnosedWatch{result, {}});
}

}  // namespace

int main(int count, char** arguments) {
  if (!plumb::tools::is_worker()) return 9;
  if (count > 1 && std::string_view(arguments[1]) == "watch") return plumb::tools::serve(watch);
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
