// SPDX-License-Identifier: Apache-2.0
//
// Members of the state cache in the op tables of the compressor.
#pragma once

#include <plumb/ops/compressor.h>

#include <string>

#include "cases/ops/cache/block_numbering.h"
#include "cases/tables/table_part.h"

namespace plumb::cases {

// biased: vLLM's CUDA and Triton compressors. raw: SGLang. raw_bf16: vLLM's HIP compressors.
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

// Names of row parameters: the number of blocks, and whether blocks lie far apart.
struct StateParameters {
  std::string blocks, far;
};

// Adds the scalars of the state cache. `blocks`: how many blocks a case has.
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
