// SPDX-License-Identifier: Apache-2.0
//
// The messages of a worker's channel, and the codec of all structs that cross it: CBOR, which
// unlike JSON has NaN and infinity. Each struct lists its fields once.
#pragma once

#include <cstdint>
#include <string>

#include "process/codec_fields.h"
#include "process/worker.h"

namespace plumb::process {

inline constexpr const char* kWorkerVariable = "PLUMB_WORKER_CHANNEL";
inline constexpr std::uint32_t kProtocol = 1;

// The parent's first message. It waits in the socket before the worker exists.
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

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Hello, program, protocol, role)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Ready, protocol, process)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WorkerRequest, task, name, body)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WorkerAnswer, task, name, process, error, left_a_process, body)

}  // namespace plumb::process
