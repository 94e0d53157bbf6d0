// SPDX-License-Identifier: Apache-2.0
//
// compress_norm_rope_insert (docs/operations/compressor.md, 10.4): compressed states of closed
// groups, and what the caches keep of them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reference/cache/cache_entry.h"
#include "reference/codes.h"
#include "reference/quantization/group_quant.h"

namespace plumb::reference {

struct CompressedStates {
  std::vector<std::int64_t> positions;  // of the tokens that close the groups, one state each
  std::int64_t head_dim = 128, ratio = 4;
  bool overlap = true;  // the group before it is part of a state's window
  // First byte of the partial state of a position in the window of state `row`.
  std::function<const std::uint8_t*(std::int64_t row, std::int64_t position)> partial_state;
  bool bf16 = false;                      // partial states; else fp32
  const float* ape = nullptr;             // [ratio, width]; null: partial states have it
  const std::uint16_t* weight = nullptr;  // bf16 [head_dim]
  double eps = 1e-6;
  const float* cos_sin = nullptr;  // [positions, 64]

  std::int64_t window() const { return overlap ? 2 * ratio : ratio; }
  std::int64_t width() const { return overlap ? 2 * head_dim : head_dim; }
};

// fp32 [states, head_dim], rotated, before any rounding to a cache's format.
Estimate compressed_states(const CompressedStates& inputs, const Numerics& numerics);

// Scales and codes of the first columns of states that are first rounded to bf16. `scales` as
// group_codes has them.
CodeEstimate compressed_scales(const Estimate& states, std::int64_t columns, const GroupQuant& how,
                               const Numerics& numerics);
CodeEstimate compressed_codes(const Estimate& states, std::int64_t columns,
                              const std::vector<double>& scales, const GroupQuant& how,
                              const Numerics& numerics);
// bf16 columns from `first` on.
Estimate compressed_columns(const Estimate& states, std::int64_t first);

// `states` as rows of an estimate of `rows` rows, state i in row places[i].
Estimate placed_states(const Estimate& states, const std::vector<std::int64_t>& places,
                       std::int64_t rows);

}  // namespace plumb::reference
