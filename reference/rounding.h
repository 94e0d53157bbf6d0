// SPDX-License-Identifier: Apache-2.0
//
// Rounding to a stored format, seen from the exact value: what a result is rounded to, and mean and
// variance of the rounded result when the value before rounding is uncertain.
#pragma once

#include "reference/bound.h"

namespace plumb::reference {

bool is_power_of_two(double x);  // 0 and negative numbers are none
double largest_finite(Format format);
// Distance from |x| to its next larger neighbour; constant below the least normal number.
double spacing(Format format, double x);
// Round to nearest, ties to even, without overflow: past the largest number the grid goes on.
double nearest(Format format, double x);
// Neighbour above a representable x.
double above(Format format, double x);

// round(centre + e) - centre for a normal e of standard deviation sigma, cut off at 8 sigma (beyond
// which one in 10^15 lies).
struct RoundedError {
  double mean = 0, variance = 0;
  double slope = 0;  // covariance with e / sigma: the part that follows e, at most sqrt(variance)
  double step = 0;   // largest difference between neighbouring results that can occur
  // Largest change of the squared distance to the centre between neighbouring results; 0 for
  // dither.
  double square_step = 0;
};
RoundedError rounded_error(Format format, double centre, double sigma);

}  // namespace plumb::reference
