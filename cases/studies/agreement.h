// SPDX-License-Identifier: Apache-2.0
//
// Measures how far two platforms agree, bit by bit, on a case with real values. Not a verdict: both
// results may be right.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

struct TensorAgreement {
  std::string tensor;
  std::int64_t elements = 0, equal = 0;  // counts of promised elements
  // Largest distance of two elements, and where it is, with both values. Floats: in representable
  // numbers (infinity if only one is a NaN). Integers: as numbers. Bytes: as codes.
  double distance = 0;
  std::string where;
};

// Launches the case once with real values on each platform and compares the outputs. Empty if the
// inputs differ (caches in the platforms' own FP8 dialect). Throws DeviceError, and Unsupported if
// an implementation lacks the op or refuses the shape.
std::vector<TensorAgreement> compare_platforms(const Case& which, std::string_view first,
                                               std::string_view second);

// Number of steps from one representable float to the other. +0 and -0 are the same place.
double steps_between(Dtype dtype, double a, double b);

}  // namespace plumb::cases
