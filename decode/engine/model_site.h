// SPDX-License-Identifier: Apache-2.0
//
// Where a model stands and what it is made on.
#pragma once

#include <cstdint>

#include "decode/engine/memory.h"
#include "decode/engine/requests.h"
#include "decode/policies/policies.h"

namespace plumb::device::decode {

// All of it outlives the model.
struct ModelSite {
  const Requests& requests;
  plumb_format dialect;  // what the platform's own encoders write; C4A and C128A: e4m3fn   [2.11]
  const Policies& policies;
  Device& device;
  Stream stream;
  EngineMemory& memory;  // what is left there keeps its address
  CachingAllocator& temporaries;
  std::uint64_t seed;
};

}  // namespace plumb::device::decode
