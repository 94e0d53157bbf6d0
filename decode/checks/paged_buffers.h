// SPDX-License-Identifier: Apache-2.0
//
// Checks the persistent buffers of V3.2's metadata after a step. Their contents follow from that
// step alone. Entries past the step's end must be 0: kernels that read whole tiles need a valid id
// there. No output depends on these entries, so only this check sees stale ones   [3.1, 3.2].
#pragma once

#include <string>
#include <vector>

#include "decode/engine/engine.h"

namespace plumb::cases {

struct WrongBuffer {
  std::string op, call;  // the call that has to write the buffer
  std::string text;      // one line: "req_id_per_token: ..."
};
// Call it after the step has finished. The engine's model is V3.2.
std::vector<WrongBuffer> wrong_paged_buffers(const device::decode::Engine& engine,
                                             device::Device& device);

}  // namespace plumb::cases
