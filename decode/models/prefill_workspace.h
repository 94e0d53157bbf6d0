// SPDX-License-Identifier: Apache-2.0
//
// Buffers of the attention of prefill tokens, shared by all layers and chunks. What is not written
// stays stale, and nothing reads it.
#pragma once

#include <cstdint>

#include "decode/engine/geometry.h"
#include "decode/engine/memory.h"

namespace plumb::device::decode {

struct PrefillWorkspace {
  PrefillWorkspace(const Geometry& geometry, EngineMemory& memory);

  std::uint16_t* kv;                   // bf16 [chunk's requests, workspace_rows, 512]   [2.8]
  std::int32_t *flat, *indptr, *lens;  // rows of kv that each token of a chunk attends   [2.9]
};

}  // namespace plumb::device::decode
