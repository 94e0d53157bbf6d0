// SPDX-License-Identifier: Apache-2.0
//
// Two implementations of an op on the inputs of one case: which rows and bits differ, and whether
// two right results may differ by as much. Both results are judged too.
#pragma once

#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

// One output, over all launches of a case.
struct OutputDifference {
  std::string tensor;
  // Of promised rows and columns, and how many of them differ.
  std::int64_t rows = 0, rows_differ = 0, elements = 0, elements_differ = 0, bits_differ = 0;
  // Largest distance of two elements in units of what two right results may differ there. Infinity
  // if only one is finite; -1: the output is no floating-point tensor with an error model.
  double of_bound = -1;
  std::string where;  // of the largest: fill, coordinates, both values
  // Two right results cannot be so far apart. Without an error model: a result that differs was
  // judged wrong.
  bool beyond = false;
};

struct ImplementationDiff {
  std::string not_compared;  // why, if nothing was: the op is lacking, a shape is refused, ...
  std::vector<OutputDifference> outputs;
  // The first line of the verdict on each result; "": it is right.
  std::string base_wrong, change_wrong;
  bool beyond() const;
  std::int64_t elements_differ() const;
};

// The case as both take it: the choices of their contracts are in the row. A choice of plumb's own
// kernels is that of the other. Throws Unsupported if the contracts contradict each other.
Case under_both_contracts(const Case& which, const RunOptions& base, const RunOptions& change);

// One launch of each for each fill, all rows live. The two are on one platform. A launch that
// throws device::DeviceError is a wrong result. Of a verdict beyond `verdict_budget` bits alone are
// compared.
ImplementationDiff diff_implementations(const Case& which, const RunOptions& base,
                                        const RunOptions& change);

}  // namespace plumb::cases
