// SPDX-License-Identifier: Apache-2.0
//
// The engine's objects that a model is made with and uses.
#pragma once

#include <cstdint>

#include "decode/engine/memory.h"
#include "decode/engine/requests.h"
#include "decode/policies/policies.h"

namespace plumb::device::decode {

// Every object referenced here outlives the model.
struct ModelSite {
  const Requests& requests;
  plumb_format dialect;  // FP8 of the platform's encoders; C4A and C128A: e4m3fn [2.11]
  const Policies& policies;
  Device& device;
  Stream stream;
  EngineMemory& memory;  // memory with addresses that never change
  CachingAllocator& temporaries;
  std::uint64_t seed;
};

}  // namespace plumb::device::decode
