// SPDX-License-Identifier: Apache-2.0
//
// Results of collectives, from the parts that the ranks of a group gave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/step_file.h"
#include "trace/trace.h"

namespace plumb::trace {

// Why tensors of several ranks cannot be compared.
struct NotCompared {
  std::string why;
};

// What one rank gave to a collective, and what it got.
struct CollectivePart {
  const TraceTensor* in = nullptr;
  const TraceTensor* out = nullptr;
  StoredBytes given, got;
};

// The result of one rank. No element differs: it is right.
struct CollectiveResult {
  std::int64_t elements = 0, of_elements = 0;  // elements that differ
  std::string first;                           // "[1, 0]: 0.5, the sum is 0.25 +- 0.002"
};

// `collective`: "all_reduce" (a sum), "reduce_scatter" (its pieces along one dimension) or
// "all_gather". A result for each part, in the same order. Throws NotCompared.
//
// A sum of n parts may be made in any order, and rounded to the parts' type after each addition:
// |error| <= u |sum| + (n - 2) u (sum of absolute values), with the unit roundoff u of the type.
std::vector<CollectiveResult> check_collective(const std::string& collective,
                                               const std::vector<CollectivePart>& parts);

}  // namespace plumb::trace
