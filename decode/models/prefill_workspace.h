// SPDX-License-Identifier: Apache-2.0
//
// Attention buffers of prefill tokens, shared by all layers and chunks. Elements that a call does
// not write keep old values, which no kernel reads.
#pragma once

#include <cstdint>

#include "decode/engine/geometry.h"
#include "decode/engine/memory.h"

namespace plumb::device::decode {

struct PrefillWorkspace {
  PrefillWorkspace(const Geometry& geometry, EngineMemory& memory);

  std::uint16_t* kv;                   // bf16 [chunk's requests, workspace_rows, 512]   [2.8]
  std::int32_t *flat, *indptr, *lens;  // rows of kv that each token attends   [2.9]
};

}  // namespace plumb::device::decode
