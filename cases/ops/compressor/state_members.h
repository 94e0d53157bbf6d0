// SPDX-License-Identifier: Apache-2.0
//
// The state cache in the tables of the compressor's ops.
#pragma once

#include <plumb/ops/compressor.h>

#include <string>

#include "cases/ops/cache/block_numbering.h"
#include "cases/tables/table_part.h"

namespace plumb::cases {

// vLLM's CUDA and Triton compressors have the first, SGLang the second, vLLM's HIP compressors the
// third.
inline const WordParameter kStateForm{
    "form", {"biased", "raw", "raw_bf16"}, "of a state: fp32 scores with ape, or projections"};
inline WordChoices state_forms() {
  return {"form",
          {{"biased", PLUMB_STATE_BIASED},
           {"raw", PLUMB_STATE_RAW},
           {"raw_bf16", PLUMB_STATE_RAW_BF16}}};
}

inline Formula state_element_bytes() { return 4 - 2 * word_is("form", "raw_bf16"); }

struct StateSizes {
  Formula rows, block_bytes;
};

// Parameters of the row: how many blocks, and whether some of them lie far apart.
struct StateParameters {
  std::string blocks, far;
};

// Scalars of the state cache. `blocks`: those that a case has.
inline StateSizes add_state_scalars(TablePart<plumb_state_cache>& state, const Formula& width,
                                    const Formula& element_bytes, const Formula& blocks,
                                    const StateParameters& parameters) {
  using S = plumb_state_cache;
  const Formula rows = state.scalar("rows", &S::rows, parameter("state_rows"));
  const Formula row_bytes = state.scalar("row_stride_bytes", &S::row_stride_bytes,
                                         (2 * width + parameter("state_row_gap")) * element_bytes);
  const Formula block_bytes =
      state.scalar("block_stride_bytes", &S::block_stride_bytes,
                   rows * row_bytes + parameter("state_block_gap") * element_bytes);
  const Formula numbered =
      computed("blocks", [=, far = parameters.far](const FormulaValues& values) {
        const bool is_far = values.row->integer(far) != 0;
        return BlockNumbering{blocks.value(values), block_bytes.value(values), is_far}.num_blocks();
      });
  state.scalar("num_blocks", &S::num_blocks, in_call(numbered, parameter(parameters.blocks)));
  return {rows, block_bytes};
}

}  // namespace plumb::cases
