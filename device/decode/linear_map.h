// SPDX-License-Identifier: Apache-2.0
//
// What stands between two ops of a decode step in place of a model's projections: a linear map of
// each row, whose matrix is a pure function of a seed. Every output column adds up four input
// columns with signs, so that rows keep their magnitude, a wrong row stays wrong and different
// columns differ.
#pragma once

#include <cstdint>

#include "device/plumb_ops.h"

namespace plumb::device {

// out[t, j] = sum_{i < 4} sign_i in[t, column_i] / 2, column and sign from hash(seed, j, i).
// Each term is halved and added in fp32, in order; one rounding to the output's format.
struct LinearMap {
  const void* in = nullptr;  // bf16 or fp32 [rows, in_columns], contiguous
  void* out = nullptr;       // bf16 or fp32 [rows, out_columns], contiguous
  std::int64_t rows = 0, in_columns = 0, out_columns = 0;
  plumb_format in_format = PLUMB_BF16, out_format = PLUMB_BF16;
  std::uint64_t seed = 0;
};

namespace kernels {
plumb_status launch_linear_map(const LinearMap& map, plumb_stream stream);
}

}  // namespace plumb::device
