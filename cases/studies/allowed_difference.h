// SPDX-License-Identifier: Apache-2.0
//
// The largest difference between two right results of one element.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "reference/bound.h"

namespace plumb::cases {

// Two independent errors of up to 6 sigma, or twice the worst case in opposite directions if 6
// sigma does not hold (structured inputs). Plus both output roundings, plus the distance of the
// expected values, which differ if each follows from other stored bytes.
inline double allowed_difference(const reference::Estimate& a, std::int64_t i,
                                 const reference::Estimate& b, std::int64_t j) {
  const auto at = static_cast<std::size_t>(i), other = static_cast<std::size_t>(j);
  const double roundings = a.bound(i) - a.arithmetic(i) + b.bound(j) - b.arithmetic(j);
  const double centres = std::abs(a.centre(i) - b.centre(j));
  const double worst = a.structured || b.structured ? a.arithmetic(i) + b.arithmetic(j)
                                                    : a.worst[at] + b.worst[other];
  if (a.structured || b.structured) return worst + roundings + centres;
  return std::min(worst, 6 * std::hypot(a.sigma[at], b.sigma[other])) + roundings + centres;
}

// A difference divided by the allowed one. Infinity if only one value is finite, or if no
// difference is allowed.
inline double share_of_allowed(double a, double b, double allowed) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (a == b) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return INFINITY;
  return std::abs(a - b) / allowed;
}

}  // namespace plumb::cases
