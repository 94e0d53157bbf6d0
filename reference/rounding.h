// SPDX-License-Identifier: Apache-2.0
//
// Rounding to a stored format: the rounded value, and the mean and variance of the rounded result
// if the value before rounding is uncertain.
#pragma once

#include "reference/bound.h"

namespace plumb::reference {

bool is_power_of_two(double x);  // false for 0 and negative numbers
double largest_finite(Format format);
// Distance from |x| to the next larger number of the format; constant below the least normal
// number.
double spacing(Format format, double x);
// Rounds to nearest, ties to even, without overflow: the grid continues past the largest number.
double nearest(Format format, double x);
// The next larger number of the format after x, which must be a number of the format.
double above(Format format, double x);

// round(centre + e) - centre for a normal e with standard deviation sigma, cut off at 8 sigma (a
// probability of 10^-15 lies beyond).
struct RoundedError {
  double mean = 0, variance = 0;
  double slope = 0;  // covariance with e / sigma, at most sqrt(variance)
  double step = 0;   // largest possible difference between adjacent results
  // Largest change of the squared distance to the centre between adjacent results; 0 if
  // on_even_grid computed the error.
  double square_step = 0;
};
RoundedError rounded_error(Format format, double centre, double sigma);

}  // namespace plumb::reference
