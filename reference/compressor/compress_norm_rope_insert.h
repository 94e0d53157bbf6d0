// SPDX-License-Identifier: Apache-2.0
//
// compress_norm_rope_insert (docs/operations/compressor.md, 10.4): compressed states of closed
// groups, and the bytes that the caches store of them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reference/cache/cache_entry.h"
#include "reference/codes.h"
#include "reference/quantization/group_quant.h"

namespace plumb::reference {

// Which results are rounded to bf16 before the store.
enum class CompressedRounding {
  store,  // none
  norm,   // the mean over the window, and the normalised state
  every   // also scores with ape, weights of the softmax, and their products with kv
};

struct CompressedStates {
  std::vector<std::int64_t> positions;  // [states]: of the token that closes each group
  std::int64_t head_dim = 128, ratio = 4;
  bool overlap = true;  // a state's window includes the previous group
  // Returns the first byte of the partial state of `position`, which is in the window of state
  // `row`.
  std::function<const std::uint8_t*(std::int64_t row, std::int64_t position)> partial_state;
  bool bf16 = false;                      // partial states are bf16; else fp32
  const float* ape = nullptr;             // [ratio, width]; null: already in the partial states
  const std::uint16_t* weight = nullptr;  // bf16 [head_dim]
  double eps = 1e-6;
  CompressedRounding rounding = CompressedRounding::store;
  const float* cos_sin = nullptr;  // [positions, 64]
  // Rotated states are rounded to bf16, then multiplied by the Hadamard matrix of head_dim rows,
  // divided by the root of head_dim.
  bool hadamard = false;

  std::int64_t window() const { return overlap ? 2 * ratio : ratio; }
  std::int64_t width() const { return overlap ? 2 * head_dim : head_dim; }
};

// Rotated states, fp32 [states, head_dim], before they are rounded to a cache's format.
Estimate compressed_states(const CompressedStates& inputs, const Numerics& numerics);

// Scales and codes of the first `columns` of the states, which are rounded to bf16 first. `scales`
// has the layout that group_codes expects.
CodeEstimate compressed_scales(const Estimate& states, std::int64_t columns, const GroupQuant& how,
                               const Numerics& numerics);
// The same scales as fp32 numbers, [states, groups], not rounded to powers of two.
Estimate compressed_fp32_scales(const Estimate& states, std::int64_t columns, const GroupQuant& how,
                                const Numerics& numerics);
CodeEstimate compressed_codes(const Estimate& states, std::int64_t columns,
                              const std::vector<double>& scales, const GroupQuant& how,
                              const Numerics& numerics);
// Columns [first, head_dim) of the states, rounded to bf16.
Estimate compressed_columns(const Estimate& states, std::int64_t first);

// An estimate of `rows` rows in which row places[i] is state i. The other rows are 0.
Estimate placed_states(const Estimate& states, const std::vector<std::int64_t>& places,
                       std::int64_t rows);

}  // namespace plumb::reference
