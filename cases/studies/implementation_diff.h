// SPDX-License-Identifier: Apache-2.0
//
// Compares two implementations of an op on the inputs of one case: which rows and bits differ, and
// whether two right results may differ that much. Both results are also judged.
#pragma once

#include <string>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

// Differences in one output, summed over all launches of a case.
struct OutputDifference {
  std::string tensor;
  // Counts of promised rows and elements, and of those that differ.
  std::int64_t rows = 0, rows_differ = 0, elements = 0, elements_differ = 0, bits_differ = 0;
  // Largest difference divided by the one that two right results may have there. Infinity if only
  // one value is finite. -1: not a floating-point tensor with an error model.
  double of_bound = -1;
  std::string where;  // place of the largest difference: fill, coordinates, both values
  // True if two right results cannot differ that much. Without an error model: true if the results
  // differ and one of them was judged wrong.
  bool beyond = false;
};

struct ImplementationDiff {
  // Why nothing was compared: the op is missing, a shape is refused, ...; "" if it was compared.
  std::string not_compared;
  std::vector<OutputDifference> outputs;
  // First line of the failed verdict on each result; "" if it is right.
  std::string base_wrong, change_wrong;
  bool beyond() const;
  std::int64_t elements_differ() const;
};

// The case under the contracts of both implementations: their choices are set in the row. A choice
// that one implementation leaves open is set by the other. Throws Unsupported if the contracts
// contradict each other.
Case under_both_contracts(const Case& which, const RunOptions& base, const RunOptions& change);

// Launches each implementation once per fill, with all rows live, on one platform. A launch that
// throws device::DeviceError counts as a wrong result. If a verdict would cost more than
// `verdict_budget`, only the bits are compared.
ImplementationDiff diff_implementations(const Case& which, const RunOptions& base,
                                        const RunOptions& change);

}  // namespace plumb::cases
