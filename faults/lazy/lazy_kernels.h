// SPDX-License-Identifier: Apache-2.0
//
// Lazy kernels: plumb's own kernel of an op with one assumption added. Each scalar, stride and
// tensor of the op's C struct has a lazy kernel for each kind (LazyKind) that applies to it;
// choices of a contract have none. Simulated platforms only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

enum class LazyKind {
  common,         // a scalar has its most common value of all rows
  first_call,     // a scalar has its value of the first launch in this process
  dense,          // a stride is as small as the tensor permits
  rounded_down,   // a dimension is rounded down to a multiple of `number`, unless the result is 0
  one_less,       // an integer is one less
  one_more,       // an integer is one more
  zero,           // a float is 0
  one,            // a float is 1
  squared,        // a float is its own square
  absent,         // an optional input is ignored
  zeros,          // an input is all zero bytes
  first_row,      // all rows of an input are equal to the first row
  largest,        // all elements of an integer input are equal to the largest
  last_row,       // the last row of an output is not written
  last_column,    // the last column of an output is not written
  last_element,   // the last element of an output is not written
  int32_offsets,  // elements from 2^31 on are read as zero, and not written
  uint32_bytes    // bytes from 2^32 on are read as zero, and not written
};
std::string_view name_of(LazyKind kind);

struct LazyKernel {
  std::string_view op;
  LazyKind kind = LazyKind::common;
  std::string member;  // member of the C struct ("eps", "x_row_stride"), or a tensor's name
  // common, one_less, one_more: the value, `real` for a float. rounded_down: `number` divides the
  // dimension.
  std::int64_t number = 0;
  double real = 0;

  std::string name() const;  // "rms_norm.hidden.rounded_down.8"
};

// In the order of the op's table. Choices of a contract have no lazy kernels: contract_table.h
// tries them.
std::vector<LazyKernel> lazy_kernels(const OpDefinition& op);

// More wrong values of the scalars of a case: 0, 1 or its square for a float, one more or less for
// an integer that is no stride. They explain failures (diagnosis/). No case has to see them.
std::vector<LazyKernel> near_values(const Case& which, const std::string& platform);

// Whether the case can show a difference between the lazy kernel and the right one. False if both
// get the same launches, and for kinds that change tensors also if the case is concurrent.
bool can_differ(const LazyKernel& kernel, const Case& which, const std::string& platform);

// plumb's kernels with one replaced by this lazy kernel, for this case. A process has one at a
// time.
RunOptions with_lazy_kernel(RunOptions options, const LazyKernel& kernel, const Case& which);

}  // namespace plumb::cases
