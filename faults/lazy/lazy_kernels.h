// SPDX-License-Identifier: Apache-2.0
//
// Lazy kernels: plumb's own kernel of an op with one assumption added. Each scalar, stride and
// tensor of the op's C struct has a lazy kernel for each kind (LazyKind) that applies to it;
// choices of a contract have none. Simulated platforms only.
#pragma once

#include <cstdint>
#include <optional>
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
  uint32_bytes,   // bytes from 2^32 on are read as zero, and not written
  // Special values of an input:
  below_minus_one,  // integers below -1 are read as 0
  nan,              // NaN is read as 0
  unusual_nan,      // NaN is read as 0, unless its bits are 0x7fc00000 (bf16: 0x7fc0)
  infinity,         // infinities are read as the largest finite number of their sign
  negative_zero     // -0 is read as 0
};
std::string_view name_of(LazyKind kind);

// Launches in which an integer of the C struct has this value, or is a multiple of it.
struct LaunchCondition {
  std::string member;
  std::int64_t value = 0;
  bool multiple = false;

  bool holds(const OpTable& table, const void* params) const;
};

struct LazyKernel {
  std::string_view op;
  LazyKind kind = LazyKind::common;
  std::string member;  // member of the C struct ("eps", "x_row_stride"), or a tensor's name
  // common, one_less, one_more: the value, `real` for a float. rounded_down: `number` divides the
  // dimension.
  std::int64_t number = 0;
  double real = 0;
  // Launches in which the kernel has its assumption; empty: all.
  std::optional<LaunchCondition> when = {};

  // "rms_norm.hidden.rounded_down.8", "mhc_pre.x_row_stride.dense.if.scaled=1"
  std::string name() const;
};

// In the order of the op's table. Choices of a contract have no lazy kernels: contract_table.h
// tries them.
std::vector<LazyKernel> lazy_kernels(const OpDefinition& op);

// Lazy kernels whose defect few launches show: the assumption holds in one branch (one value of a
// word or flag; for ends of outputs, sizes that a tile divides), or is about special values of an
// input. An op may refuse such launches or values, so no case has to see them: they show for which
// pairs of parameters, and which values, rows are missing.
std::vector<LazyKernel> rare_lazy_kernels(const OpDefinition& op);

// More wrong values of the scalars of a case: 0, 1 or its square for a float, one more or less for
// an integer that is no stride. They explain failures (diagnosis/). No case has to see them.
std::vector<LazyKernel> near_values(const Case& which, const std::string& platform);

// Whether the case can show a difference between the lazy kernel and the right one. False if both
// get the same launches, and for kinds that change tensors also if the case is concurrent or
// queued.
bool can_differ(const LazyKernel& kernel, const Case& which, const std::string& platform);

// plumb's kernels with one replaced by this lazy kernel, for this case. A process has one at a
// time.
RunOptions with_lazy_kernel(RunOptions options, const LazyKernel& kernel, const Case& which);

}  // namespace plumb::cases
