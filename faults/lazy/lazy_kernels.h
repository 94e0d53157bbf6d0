// SPDX-License-Identifier: Apache-2.0
//
// Lazy kernels: plumb's own kernel of an op, right but for one thing that it takes for granted.
// They come from the op's table: one for each member of its C struct and each kind. Simulated
// platforms only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

enum class LazyKind {
  common,        // a scalar is always the value that it has in most rows
  first_call,    // a scalar is what it was in the first launch of the process
  dense,         // a stride is that of a tensor without gaps
  rounded_down,  // a dimension loses what a multiple of `number` leaves over, never all
  absent,        // an optional input is ignored
  zeros,         // an input is all zero bytes
  first_row,     // every row of an input is its first
  largest,       // every element of an input of integers is the largest
  last_row,      // of an output: not written
  last_column,
  last_element,
  int32_offsets,  // elements 2^31 and more from the first: read as zero, and not written
  uint32_bytes    // bytes 2^32 and more from the first
};
std::string_view name_of(LazyKind kind);

struct LazyKernel {
  std::string_view op;
  LazyKind kind = LazyKind::common;
  std::string member;  // of the C struct: "eps", "x_row_stride"; or the name of a tensor
  std::int64_t number =
      0;            // of common: the value; of rounded_down: what a dimension is a multiple of
  double real = 0;  // of common, if the member is a float

  std::string name() const;  // "rms_norm.hidden.rounded_down.8"
};

// Those of an op, in the order of its table. A stride has no row that it could differ in unless
// some row of the default tier has a gap: `dense` is there all the same.
std::vector<LazyKernel> lazy_kernels(const OpDefinition& op);

// Whether its launches of this row differ from the right kernel's; of kinds that depend on values
// or on what ran before, whether they could.
bool can_differ(const LazyKernel& kernel, const Case& which, const std::string& platform);

// plumb's kernels with this one, for this case. One at a time in a process.
RunOptions with_lazy_kernel(RunOptions options, const LazyKernel& kernel, const Case& which);

}  // namespace plumb::cases
