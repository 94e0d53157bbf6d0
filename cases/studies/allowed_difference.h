// SPDX-License-Identifier: Apache-2.0
//
// How far two right results of one element may be apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "reference/bound.h"

namespace plumb::cases {

// Independent of each other up to 6 sigma, or in opposite directions where the worst case holds;
// both roundings; and how far apart the values are, if each follows from other stored bytes.
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

// A difference in units of what is allowed. Infinity if only one is finite, or if nothing may
// differ.
inline double share_of_allowed(double a, double b, double allowed) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (a == b) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return INFINITY;
  return std::abs(a - b) / allowed;
}

}  // namespace plumb::cases
