// SPDX-License-Identifier: Apache-2.0
//
// The persistent buffers of V3.2's metadata after a step: what they hold follows from that step
// alone. Nobody ought to read behind what it reached, so no output shows what was left there: it is
// a valid id all the same (0), for who reads whole tiles   [3.1, 3.2].
#pragma once

#include <string>
#include <vector>

#include "decode/engine/engine.h"

namespace plumb::cases {

struct WrongBuffer {
  std::string op, call;  // which ought to have made it right
  std::string text;      // one line: "req_id_per_token: ..."
};
// The step is over; the engine's model is V3.2.
std::vector<WrongBuffer> wrong_paged_buffers(const device::decode::Engine& engine,
                                             device::Device& device);

}  // namespace plumb::cases
