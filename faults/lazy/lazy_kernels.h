// SPDX-License-Identifier: Apache-2.0
//
// Lazy kernels: plumb's own kernel of an op with one assumption added. The op's table gives one for
// each member of its C struct and each kind. Simulated platforms only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

enum class LazyKind {
  common,        // a scalar has its most common value of all rows
  first_call,    // a scalar has its value of the first launch in this process
  dense,         // a stride is as small as the tensor permits
  rounded_down,  // a dimension is rounded down to a multiple of `number`, unless that is 0
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
  // Of common, the value, `real` for a float; of rounded_down, what the dimension is a multiple of.
  std::int64_t number = 0;
  double real = 0;

  std::string name() const;  // "rms_norm.hidden.rounded_down.8"
};

// In the order of the op's table. Choices of a contract have none: contract_table.h tries them.
std::vector<LazyKernel> lazy_kernels(const OpDefinition& op);

// False: in this case the lazy kernel gets the same launches as the right one.
bool can_differ(const LazyKernel& kernel, const Case& which, const std::string& platform);

// plumb's kernels, with this lazy one, for this case. The process can have one at a time.
RunOptions with_lazy_kernel(RunOptions options, const LazyKernel& kernel, const Case& which);

}  // namespace plumb::cases
