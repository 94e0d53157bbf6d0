// SPDX-License-Identifier: Apache-2.0
//
// Buffers of the prefill part of a step and of packed decode batches, shared by all layers and
// chunks. What is not written stays stale, and nothing reads it.
#pragma once

#include <cstdint>

#include "device/decode/geometry.h"
#include "device/decode/memory.h"

namespace plumb::device::decode {

struct PrefillWorkspace {
  PrefillWorkspace(const Geometry& geometry, Memory& memory);

  std::uint16_t* kv;                   // bf16 [chunk's requests, workspace_rows, 512]   [2.8]
  std::int32_t *flat, *indptr, *lens;  // rows of kv that each token of a chunk attends   [2.9]
  std::uint8_t* keys;                  // fp8 [key_columns, index_dim], of a chunk
  float *key_scales, *logits;          // [key_columns], [max_tokens, key_columns]
  std::int64_t key_columns;            // most keys of a chunk
  std::uint8_t* packed_codes;          // of a packed batch: index_q_codes
  float* packed_scales;                // index_scales
  std::int32_t* packed_top_k;          // [max_decode_tokens, top_k]
};

}  // namespace plumb::device::decode
