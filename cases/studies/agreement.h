// SPDX-License-Identifier: Apache-2.0
//
// How far two platforms agree on a case's first step, bit for bit. Not a verdict: both may be
// right.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cases/drivers/run.h"

namespace plumb::cases {

struct TensorAgreement {
  std::string tensor;
  std::int64_t elements = 0, equal = 0;  // of promised rows and columns
  // Largest distance of two elements: in units in the last place for floats (infinity if only one
  // is a NaN), as numbers for integers, as codes for bytes; and where, with both values.
  double distance = 0;
  std::string where;
};

// The outputs that one launch with real values stores on each of two platforms. Empty where the
// inputs themselves differ (caches in the platforms' own FP8 dialect). Throws DeviceError, and
// Unsupported where an implementation has not got the op or refuses the shape.
std::vector<TensorAgreement> compare_platforms(const Case& which, std::string_view first,
                                               std::string_view second);

// Steps from one float to another over the floats between them; both zeros are one place.
double steps_between(Dtype dtype, double a, double b);

}  // namespace plumb::cases
