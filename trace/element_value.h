// SPDX-License-Identifier: Apache-2.0
//
// Elements of recorded tensors as numbers and as text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "trace/trace.h"

namespace plumb::trace {

// A format in which numbers are rounded to nearest.
struct RoundedFormat {
  double unit = 0;      // largest relative error of a rounding; 0: integers, whose sums are exact
  double smallest = 0;  // largest error of a rounding near zero
  double largest = 0;   // largest finite value
};
// nullopt for a type whose elements element_value() does not know.
std::optional<RoundedFormat> rounded_format(const ElementType& type);

// The element at this address: of f16, bf16, f32 or i32.
double element_value(const ElementType& type, const std::byte* bytes);
// Prints a number if the format is common, and bits otherwise.
std::string element_text(const ElementType& type, const std::byte* bytes);

}  // namespace plumb::trace
