// SPDX-License-Identifier: Apache-2.0
//
// The messages that a worker and its parent exchange.
#pragma once

#include <cstdint>
#include <string>

#include "process/codec.h"

namespace plumb::process {

inline constexpr const char* kWorkerVariable = "PLUMB_WORKER_CHANNEL";
inline constexpr std::uint32_t kProtocol = 1;

// The parent's first message, which tells the worker its role. The parent sends it right after it
// has started the worker's process, without waiting for a message from it.
struct Hello {
  std::string program = "plumb";
  std::uint32_t protocol = kProtocol;
  std::string role;
};

// The worker's first message.
struct Ready {
  std::uint32_t protocol = kProtocol;
  std::int64_t process = 0;
};

}  // namespace plumb::process
